package e2e

import (
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// App is a namespaced resource whose operator runs workloads.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec,omitempty"`
	Status AppStatus `json:"status,omitempty"`
}

// AppSpec is the desired state of an App.
type AppSpec struct {
	// Image is that of each container.
	Image string `json:"image,omitempty"`
	// Pods is a value of controlplane.PodAnnotation, for the pods of all workloads.
	Pods string `json:"pods,omitempty"`
	// Suspended and Disabled are switches of the feature.
	Suspended bool `json:"suspended,omitempty"`
	Disabled  bool `json:"disabled,omitempty"`
}

// AppStatus is the observed state of an App.
type AppStatus struct {
	apis.Status          `json:",inline"`
	apis.LifecycleStatus `json:",inline"`
}

// AppList is a list of Apps.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := resources.NewScheme()
	scheme.AddKnownTypes(resources.GroupVersion, &App{}, &AppList{})
	return scheme
}

// appCRD returns the definition of App, with a status subresource.
func appCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := resources.CRD()
	crd.Name = "apps." + resources.GroupVersion.Group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "apps", Singular: "app", Kind: "App", ListKind: "AppList",
	}
	return crd
}

// DeepCopy returns a copy that shares nothing with a.
func (a *App) DeepCopy() *App {
	if a == nil {
		return nil
	}
	out := &App{TypeMeta: a.TypeMeta, Spec: a.Spec}
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	a.Status.Status.DeepCopyInto(&out.Status.Status)
	a.Status.LifecycleStatus.DeepCopyInto(&out.Status.LifecycleStatus)
	return out
}

// DeepCopyObject is DeepCopy for a runtime.Object.
func (a *App) DeepCopyObject() runtime.Object {
	if a == nil {
		return nil
	}
	return a.DeepCopy()
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *AppList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &AppList{TypeMeta: l.TypeMeta, Items: slices.Clone(l.Items)}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopy()
	}
	return out
}
