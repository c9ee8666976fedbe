package main

import (
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/plugintest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMain runs the tests, or the plugin as a program.
func TestMain(m *testing.M) { os.Exit(plugintest.Main(m, plugin)) }

// shop returns a resource that asks for the capability.
func shop(spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion("shop.example.com/v1")
	object.SetKind("Shop")
	object.SetNamespace("default")
	object.SetName("blue")
	return object
}

// TestPlugin asks for each row twice in the process, and twice in a program. All answers have to be the same.
func TestPlugin(t *testing.T) {
	owner := plugins.Owner{APIVersion: "shop.example.com/v1", Kind: "Shop", Namespace: "default", Name: "blue"}
	want := func(spec Spec) []*plugins.Dependent {
		return []*plugins.Dependent{
			plugins.Owns("settings", settings(owner)),
			plugins.Owns("server", server(owner, spec)).After("settings"),
			plugins.Owns("service", service(owner)),
		}
	}
	three := int32(3)
	long := shop(nil)
	long.SetName(strings.Repeat("blue", 16))
	plugintest.Rows{
		"any version": {Owner: shop(nil), Want: want(Spec{Image: "registry.example.com/placeholder:2"})},
		"a version": {
			Owner: shop(nil), Version: "1", Want: want(Spec{Image: "registry.example.com/placeholder:1"}),
		},
		"all fields": {
			Owner: shop(map[string]any{"replicas": int64(3), "image": "mirror.example.com/placeholder:2.1"}),
			Want:  want(Spec{Image: "mirror.example.com/placeholder:2.1", Replicas: &three}),
		},
		"a negative number": {
			Owner: shop(map[string]any{"replicas": int64(-1)}), WantProblem: "spec.replicas must not be negative",
		},
		"a field of another type": {
			Owner: shop(map[string]any{"replicas": "many"}), WantProblem: "the spec of Shop blue is not as it should be",
		},
		"a long name": {Owner: long, WantProblem: "is longer than 63 characters"},
	}.Run(t, plugin)
}

// TestServer says what a server is like, apart from the function that makes it.
func TestServer(t *testing.T) {
	owner := plugins.Owner{Kind: "Shop", Name: "blue"}
	template := server(owner, Spec{Image: "x"}).Spec.Template
	if got := template.Spec.Containers[0]; got.Image != "x" || got.EnvFrom[0].ConfigMapRef.Name != settings(owner).Name {
		t.Errorf("the container is %v, want the image of the spec and the settings of the owner", got)
	}
	selector := service(owner).Spec.Selector
	if len(selector) == 0 {
		t.Error("the service selects nothing, want the pods of the server")
	}
	for key, value := range selector {
		if template.Labels[key] != value {
			t.Errorf("the pods have the labels %v, want those that the service selects, %v", template.Labels, selector)
		}
	}
}
