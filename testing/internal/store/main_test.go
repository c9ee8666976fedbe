package store_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// App is a Go type that is neither built in nor defined.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec,omitempty"`
	Status AppStatus `json:"status,omitempty"`
}

// AppSpec is what an App should be.
type AppSpec struct {
	Size int `json:"size,omitempty"`
}

// AppStatus is what an App is.
type AppStatus struct {
	Ready bool `json:"ready,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (a *App) DeepCopyObject() runtime.Object {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// AppList is a list of them.
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []App `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (l *AppList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*App))
	}
	return &c
}

var (
	appVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	now        = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
)

var newScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	scheme.AddKnownTypes(appVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(scheme, appVersion)
	return scheme
})

// newStore returns a store with the namespace ns and the given objects.
func newStore(t testing.TB, given ...client.Object) *store.Store {
	t.Helper()
	s := store.New(store.Options{Scheme: newScheme(), Now: func() time.Time { return now }})
	give(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	give(t, s, given...)
	return s
}

func give(t testing.TB, s *store.Store, objs ...client.Object) {
	t.Helper()
	if err := s.Give(objs...); err != nil {
		t.Fatal(err)
	}
}

// newClient returns a client of a new store.
func newClient(t testing.TB, given ...client.Object) *store.Client {
	t.Helper()
	return newStore(t, given...).Client(store.ClientOptions{})
}

func metadata(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metadata(name), Data: map[string]string{"k": "v"}}
}

func app(name string) *App { return &App{ObjectMeta: metadata(name), Spec: AppSpec{Size: 1}} }

// read returns an object as it is stored.
func read[T client.Object](t testing.TB, c client.Reader, obj T) T {
	t.Helper()
	got := obj.DeepCopyObject().(T)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil {
		t.Fatal(err)
	}
	return got
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// widgets defines a kind with a status, defaults and two versions.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	object := func(fields map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	schema := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": object(map[string]apiextensionsv1.JSONSchemaProps{
			"size":  {Type: "integer", Minimum: new(float64(0))},
			"color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"blue"`)}},
		}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{
			"ready": {Type: "boolean"}, "size": {Type: "integer"},
		}),
	})
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
		Subresources: &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
			},
		},
		SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}},
	}
	beta := *version.DeepCopy()
	beta.Name, beta.Storage = "v1beta1", false
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version, beta},
		},
	}
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return d
}

func widget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1), "color": "blue"}}}
	u.SetGroupVersionKind(appVersion.WithKind("Widget"))
	u.SetNamespace("ns")
	u.SetName(name)
	return u
}

// exists reports whether an object is there.
func exists(t testing.TB, c client.Reader, obj client.Object) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// reason checks the reason of an error; empty is none.
func reason(t testing.TB, err error, want metav1.StatusReason, text string) {
	t.Helper()
	if want == "" && text == "" {
		must(t, err)
		return
	}
	if err == nil || apierrors.ReasonForError(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want one with the reason %q and %q", err, want, text)
	}
}

// hasCause reports whether an error of an API server has a cause.
func hasCause(err error, cause metav1.CauseType) bool {
	_, ok := apierrors.StatusCause(err, cause)
	return ok
}
