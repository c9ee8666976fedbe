package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestReadAgain reads twice what is stored, in a store and in its fork, and changes what it got in between.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	labelled := app("two")
	labelled.Labels = map[string]string{"a": "b"}
	s := newStore(t, app("one"), labelled, &corev1.ConfigMap{ObjectMeta: metadata("one")})
	for _, read := range []func(c client.Client) (client.Object, error){
		func(c client.Client) (client.Object, error) {
			obj := app("one")
			return obj, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		},
		func(c client.Client) (client.Object, error) {
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return obj, c.Get(t.Context(), client.ObjectKeyFromObject(app("one")), obj)
		},
		func(c client.Client) (client.Object, error) {
			list := &AppList{}
			err := c.List(t.Context(), list, client.InNamespace("ns"), client.MatchingLabels{"a": "b"})
			if err == nil && len(list.Items) != 1 {
				t.Fatalf("%d items are selected, want 1", len(list.Items))
			}
			return &list.Items[0], err
		},
	} {
		var first client.Object
		for _, s := range []*store.Store{s, s, s.Fork()} {
			for _, options := range []store.ClientOptions{{}, {View: store.NewView()}} {
				obj, err := read(s.Client(options))
				must(t, err)
				obj.GetObjectKind().SetGroupVersionKind(appVersion.WithKind("App")) // A cache sets it.
				if first == nil {
					first = obj.DeepCopyObject().(client.Object)
				}
				if diff := cmp.Diff(first, obj); diff != "" {
					t.Errorf("another answer to the same question (-first, +now):\n%s", diff)
				}
				obj.SetLabels(map[string]string{"changed": "by the reader"})
			}
		}
	}
}

// TestReadWithAnotherDefinition reads an object after the definition of its kind got a default.
func TestReadWithAnotherDefinition(t *testing.T) {
	t.Parallel()
	definition := widgets()
	c := newClient(t, definition)
	must(t, c.Create(t.Context(), widget("one")))
	read := func() string {
		w := widget("")
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(widget("one")), w))
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(w.GroupVersionKind())
		must(t, c.List(t.Context(), list))
		added, _, err := unstructured.NestedString(w.Object, "spec", "added")
		must(t, err)
		listed, _, err := unstructured.NestedString(list.Items[0].Object, "spec", "added")
		must(t, err)
		if added != listed {
			t.Errorf("the object has %q, in a list it has %q", added, listed)
		}
		return added
	}
	if got := read(); got != "" {
		t.Errorf("the field is %q without a default", got)
	}
	changed := &unstructured.Unstructured{}
	changed.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(definition), changed))
	added := `{
		"op": "add", "path": "/spec/versions/%d/schema/openAPIV3Schema/properties/spec/properties/added",
		"value": {"type": "string", "default": "by default"}
	}`
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, "["+added+","+added+"]", 0, 1))
	must(t, c.Patch(t.Context(), changed, patch))
	if got := read(); got != "by default" {
		t.Errorf("the field is %q with a default", got)
	}
}

// TestReadPages lists by limits around the number of objects, before and after all were listed.
func TestReadPages(t *testing.T) {
	t.Parallel()
	c := newClient(t, app("one"), app("two"))
	for range 2 {
		for limit, items := range map[int64]int{0: 2, 1: 1, 2: 2, 3: 2} {
			list := &AppList{}
			must(t, c.List(t.Context(), list, client.InNamespace("ns"), client.Limit(limit)))
			if len(list.Items) != items || (list.Continue != "") != (items < 2) {
				t.Errorf("limit %d: %d items, to be continued at %q", limit, len(list.Items), list.Continue)
			}
		}
	}
}

// TestReadWritten reads what was written, alone and in a list, and compares it with what the API server answers.
func TestReadWritten(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "ns"}}`,
		`{
			"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": "ns"},
			"stringData": {"a": "b"}
		}`,
		`{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one", "namespace": "ns"},
			"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
				"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}
			}}
		}`,
	} {
		c := newClient(t, widgets())
		written := func(by string) *unstructured.Unstructured {
			obj := &unstructured.Unstructured{}
			must(t, obj.UnmarshalJSON([]byte(content)))
			obj.SetLabels(map[string]string{"by": by})
			return obj
		}
		patched := func(data string) error {
			return c.Patch(t.Context(), written(""), client.RawPatch(types.MergePatchType, []byte(data)))
		}
		update := func(opts ...client.UpdateOption) error {
			obj := read(t, c, written(""))
			obj.SetLabels(map[string]string{"by": "update"})
			return c.Update(t.Context(), obj, opts...)
		}
		for _, write := range []func() error{
			func() error { return c.Create(t.Context(), written("create")) },
			func() error { return update() },
			func() error { return patched(`{"metadata": {"labels": null}}`) },
			func() error { return patched(`{}`) },
			func() error { return update(client.DryRunAll) },
			func() error {
				config := client.ApplyConfigurationFromUnstructured(written("apply"))
				return c.Apply(t.Context(), config, client.FieldOwner("test"), client.ForceOwnership)
			},
		} {
			must(t, write())
			want, list := written(""), &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(want.GroupVersionKind())
			// Memory answers no question with options.
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(want), want, &client.GetOptions{}))
			must(t, c.List(t.Context(), list))
			for _, got := range []*unstructured.Unstructured{read(t, c, want), &list.Items[0]} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("another answer than that of the API server (-server, +memory):\n%s", diff)
				}
			}
		}
	}
}
