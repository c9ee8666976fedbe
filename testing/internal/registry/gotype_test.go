package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
