package fake_test

import (
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// widget is a Go type that nothing but the scheme knows.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   widgetSpec   `json:"spec,omitempty"`
	Status widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	Size int `json:"size,omitempty"`
}

type widgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*widget))
	}
	return &c
}

var (
	version    = schema.GroupVersion{Group: "example.com", Version: "v1"}
	widgetKind = version.WithKind("Widget")
	gadgetKind = version.WithKind("Gadget")
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(widgetKind, &widget{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &widgetList{})
	return scheme
}

func newWidget(name string) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// gadgets defines the kind of newGadget, which has no Go type. Nothing else than the size of a gadget is known.
func gadgets() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + version.Group}}
	d.Spec.Group, d.Spec.Scope = version.Group, apiextensionsv1.NamespaceScoped
	d.Spec.Names.Kind, d.Spec.Names.Plural = gadgetKind.Kind, "gadgets"
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: version.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
				Type:       "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer", Minimum: new(1.0)}},
			}},
		}},
	}}
	return d
}

func newGadget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gadgetKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func configMap(name, namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}
	return d
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

// get fills an object, which must be there, and returns it.
func get[T client.Object](t *testing.T, c client.Client, obj T, name string) T {
	t.Helper()
	must(t, c.Get(t.Context(), keyOf(name), obj))
	return obj
}

// must fails the test at once if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got the error %v, want none", err)
	}
}
