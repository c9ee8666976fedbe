package content_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/content"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKindOf(t *testing.T) {
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	named := &unstructured.Unstructured{Object: map[string]any{}}
	named.SetGroupVersionKind(thing)
	renamed := &appsv1.Deployment{}
	renamed.SetGroupVersionKind(thing)
	for name, tc := range map[string]struct {
		object client.Object
		want   schema.GroupVersionKind
	}{
		"unstructured":     {named, thing},
		"without a kind":   {&unstructured.Unstructured{Object: map[string]any{}}, schema.GroupVersionKind{}},
		"typed":            {&appsv1.Deployment{}, deployment},
		"typed, with kind": {renamed, thing},
		"not built-in":     {&metav1.PartialObjectMetadata{}, schema.GroupVersionKind{}},
		"nil":              {nil, schema.GroupVersionKind{}},
		"typed nil":        {(*appsv1.Deployment)(nil), schema.GroupVersionKind{}},
	} {
		if got := content.KindOf(tc.object); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestOfDoesNotChangeTheKindOfTheObject(t *testing.T) {
	other := schema.GroupVersionKind{Version: "v1", Kind: "Other"}
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing"}}
	got, err := content.Of(other, object)
	if err != nil || got.GroupVersionKind() != other || object.GetKind() != "Thing" {
		t.Errorf("the content is %v (%v) of %v, want the kind %v in it and the object as before", got, err, object,
			other)
	}
}
