package store_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/store"

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

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	scheme.AddKnownTypes(appVersion, &App{}, &AppList{})
	metav1.AddToGroupVersion(scheme, appVersion)
	return scheme
}

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

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(name), Data: map[string]string{"k": "v"}}
}

func app(name string) *App { return &App{ObjectMeta: meta(name), Spec: AppSpec{Size: 1}} }

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
