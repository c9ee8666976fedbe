package reconcilers_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unstructuredOf returns a function that returns an unstructured object of a kind, named after a node.
func unstructuredOf(
	gvk schema.GroupVersionKind, node string,
) func(context.Context, *resources.Widget) (*unstructured.Unstructured, error) {
	return func(_ context.Context, w *resources.Widget) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		object.SetNamespace(w.Namespace)
		object.SetName(w.Name + "-" + node)
		return object, nil
	}
}

// In the short form, unstructured objects are read from the cache, as typed ones are: while nothing changes, there is no
// request (invariant L1), whatever the switches.
func TestL1UnstructuredObjectsCostNoRequest(t *testing.T) {
	t.Parallel()
	configMaps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	meters := meterKind("untyped")
	empty := func(gvk schema.GroupVersionKind) *unstructured.Unstructured {
		object, _ := unstructuredOf(gvk, "")(t.Context(), &resources.Widget{})
		return object
	}
	owns := func(node string, gvk schema.GroupVersionKind) *espalier.Child[*resources.Widget, *unstructured.Unstructured] {
		return espalier.Owns(node, unstructuredOf(gvk, node)).Type(empty(gvk)).Labeled().Reports(node)
	}
	each := func(ctx context.Context, w *resources.Widget) ([]*unstructured.Unstructured, error) {
		one, err := unstructuredOf(configMaps, "each")(ctx, w)
		return []*unstructured.Unstructured{one}, err
	}
	o := startProbed(t, meters,
		owns("map", configMaps),
		owns("meter", meters),
		espalier.OwnsEach("each", each).Type(empty(configMaps)).Labeled().Reports("each"),
		espalier.Owns("free", unstructuredOf(configMaps, "free")).Type(empty(configMaps)).Unowned().Reports("free"),
		espalier.Owns("read", unstructuredOf(configMaps, "map")).Type(empty(configMaps)).ReadOnly().Reports("read"),
		espalier.Owns("read-meter", unstructuredOf(meters, "meter")).Type(empty(meters)).ReadOnly().Reports("read-meter"),
		espalier.Owns("gone", unstructuredOf(configMaps, "gone")).Type(empty(configMaps)).Labeled().Absent().Reports("gone"),
	)
	o.install(t)
	w := o.widget(t, "one", "")
	o.reports(t, w, map[string]string{
		"map": "Ready", "meter": "Ready", "each": "Ready", "free": "Ready", "read": "Ready", "read-meter": "Ready",
		"gone": "NotDesired",
	})
	o.staysIdle(t, w)
}
