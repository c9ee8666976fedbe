package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// parse returns the object of a manifest in YAML.
func parse(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

// typedOf returns an object of the Go type of a kind, without its kind, or nil if the kind is not built-in.
func typedOf(t testing.TB, object *unstructured.Unstructured) client.Object {
	t.Helper()
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil
	}
	fields := object.DeepCopy().Object
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, typed); err != nil {
		t.Fatal(err)
	}
	return typed.(client.Object)
}

// expectHealth expects that a function says the same of an object as it is unstructured and as it is typed, and does
// not change it. Fields are what follows apiVersion and kind in its manifest.
func expectHealth(t testing.TB, apiVersion, kind, fields string, of func(client.Object) apis.Health, want apis.Health) {
	t.Helper()
	object := parse(t, "apiVersion: "+apiVersion+"\nkind: "+kind+"\n"+fields)
	before := object.DeepCopy()
	if diff := cmp.Diff(want, of(object)); diff != "" {
		t.Errorf("of the object (-want, +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the object was changed (-before +after), want it unchanged:\n%s", diff)
	}
	if typed := typedOf(t, object); typed != nil {
		if diff := cmp.Diff(want, of(typed)); diff != "" {
			t.Errorf("of the typed object (-want, +got):\n%s", diff)
		}
	}
}
