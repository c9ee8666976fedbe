// Package app has nodes with bugs that a replay finds. With the environment variable MENDED they have none.
package app

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// App is a resource.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status Status `json:"status,omitempty"`
}

// Status is what an App is.
type Status struct {
	Phase  string `json:"phase,omitempty"`
	Child  string `json:"child,omitempty"`
	Bucket string `json:"bucket,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (a *App) DeepCopyObject() runtime.Object {
	c := *a
	c.ObjectMeta = *a.ObjectMeta.DeepCopy()
	return &c
}

// AppList is a list of them.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *AppList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*App))
	}
	return &c
}

// NewScheme has the types of the tests.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &App{}, &AppList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}
