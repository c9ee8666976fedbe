package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// App is a Go type that is neither built in nor defined.
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AppSpec   `json:"spec,omitempty"`
	Status AppStatus `json:"status,omitempty"`
}

type AppSpec struct {
	Names []string `json:"names,omitempty"`
}

type AppStatus struct {
	Ready bool `json:"ready,omitempty"`
}

func (a *App) DeepCopyObject() runtime.Object {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Names = append([]string(nil), a.Spec.Names...)
	return &c
}

var appKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"}

func appScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(appKind.GroupVersion(), &App{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "App"}, &App{})
	scheme.AddKnownTypes(appKind.GroupVersion(), &corev1.PodExecOptions{})
	return scheme
}

// app returns the same object of the Go type and unstructured.
func app(change ...func(*App)) *App {
	a := &App{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", Labels: map[string]string{"l": "1"}, ResourceVersion: "7", Generation: 3,
	}, Spec: AppSpec{Names: []string{"one"}}, Status: AppStatus{Ready: true}}
	for _, c := range change {
		c(a)
	}
	return a
}

func toUnstructured(t *testing.T, a *App) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(appKind)
	return u
}

func fromUnstructured(t *testing.T, obj client.Object) *App {
	t.Helper()
	a := &App{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.(*unstructured.Unstructured).Object, a)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFromGoType(t *testing.T) {
	t.Parallel()
	kind, ok := registry.FromGoType(appKind, appScheme())
	if !ok {
		t.Fatal("the kind is not found, want it to be")
	}
	if kind.Kind != appKind.GroupKind() || kind.Resource != "apps" || kind.Scope != registry.AnyScope {
		t.Errorf("the kind is %+v, want %s with the resource apps and any scope", kind, appKind.GroupKind())
	}
	var versions []string
	for _, v := range kind.Versions {
		versions = append(versions, v.Name)
	}
	if len(versions) != 2 || versions[0] != "v1" || versions[1] != "v1beta1" {
		t.Errorf("the versions are %v, want [v1 v1beta1]", versions)
	}
	if _, ok := kind.Versions[0].New().(*App); !ok {
		t.Errorf("New returns a %T, want an *App", kind.Versions[0].New())
	}
	if _, ok := registry.FromGoType(appKind.GroupVersion().WithKind("Other"), appScheme()); ok {
		t.Error("a kind that the scheme lacks is found, want it not to be")
	}
	if _, ok := registry.FromGoType(appKind.GroupVersion().WithKind("PodExecOptions"), appScheme()); ok {
		t.Error("a kind without metadata is found, want it not to be")
	}
}

func TestFromResource(t *testing.T) {
	t.Parallel()
	for _, namespaced := range []bool{true, false} {
		kind := registry.FromResource(appKind.GroupVersion(), metav1.APIResource{
			Name: "applications", Kind: "App", Namespaced: namespaced,
		})
		if kind.Kind != appKind.GroupKind() || kind.Resource != "applications" ||
			(kind.Scope == registry.Namespaced) != namespaced || (kind.Scope == registry.Cluster) == namespaced {
			t.Errorf("the kind is %+v, want %s with the resource applications, namespaced: %t", kind,
				appKind.GroupKind(), namespaced)
		}
		if got := kind.Versions[0].New().GetObjectKind().GroupVersionKind(); got != appKind {
			t.Errorf("New returns a %s, want a %s", got, appKind)
		}
	}
}

// TestUnknownContents prepares objects of which nothing is known, of a Go type and unstructured.
func TestUnknownContents(t *testing.T) {
	t.Parallel()
	goType, _ := registry.FromGoType(appKind, appScheme())
	resource := registry.FromResource(appKind.GroupVersion(), metav1.APIResource{Name: "apps", Kind: "App",
		Namespaced: true})

	type outcome struct {
		generation int64
		names      int
		ready      bool
		label      string
	}
	for _, test := range []struct {
		name string
		// change is what the update changes; nil creates.
		change      func(*App)
		subresource string
		want        outcome
	}{
		{name: "create", want: outcome{1, 1, false, "1"}},
		{name: "update of nothing", change: func(*App) {}, want: outcome{3, 1, true, "1"}},
		{name: "generation is not the client's", change: func(a *App) { a.Generation = 9 },
			want: outcome{3, 1, true, "1"}},
		{name: "update of labels", change: func(a *App) { a.Labels = map[string]string{"l": "2"} },
			want: outcome{3, 1, true, "2"}},
		{name: "update of the spec", change: func(a *App) { a.Spec.Names = []string{"one", "two"} },
			want: outcome{4, 2, true, "1"}},
		{name: "update that empties the spec", change: func(a *App) { a.Spec.Names = nil },
			want: outcome{4, 0, true, "1"}},
		{name: "update of the status", change: func(a *App) { a.Status.Ready = false }, want: outcome{3, 1, true, "1"}},
		{name: "update of the subresource", change: func(a *App) {
			a.Status.Ready, a.Spec.Names, a.Labels = false, nil, map[string]string{"l": "2"}
		}, subresource: "status", want: outcome{3, 1, false, "1"}},
	} {
		run := func(
			t *testing.T, s registry.Strategy, convert func(*App) client.Object, back func(client.Object) *App,
		) {
			old := convert(app())
			obj := old.DeepCopyObject().(client.Object)
			if test.change == nil {
				s.PrepareForCreate(obj)
			} else {
				obj = convert(app(test.change))
				s.PrepareForUpdate(obj, old, test.subresource)
			}
			a := back(obj)
			got := outcome{a.Generation, len(a.Spec.Names), a.Status.Ready, a.Labels["l"]}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if a.ResourceVersion != "7" {
				t.Errorf("the resource version became %q, want 7", a.ResourceVersion)
			}
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run(t, goType.Versions[0].Strategy,
				func(a *App) client.Object { return a }, func(o client.Object) *App { return o.(*App) })
		})
		t.Run(test.name+", unstructured", func(t *testing.T) {
			t.Parallel()
			run(t, resource.Versions[0].Strategy,
				func(a *App) client.Object { return toUnstructured(t, a) },
				func(o client.Object) *App { return fromUnstructured(t, o) })
		})
	}
}
