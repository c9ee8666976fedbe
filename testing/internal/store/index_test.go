package store_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestIndexes selects by fields from a cache, which has the index data.k.
func TestIndexes(t *testing.T) {
	t.Parallel()
	kinds := map[schema.GroupKind]map[string]client.IndexerFunc{
		{Kind: "ConfigMap"}: {"data.k": func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["k"], "any"}
		}},
	}
	other := configMap("two")
	other.Data["k"] = "w"
	s := newStore(t, configMap("one"), other)
	for _, test := range []struct {
		selector string
		want     []string
		err      string
	}{
		{selector: "data.k=v", want: []string{"one"}},
		{selector: "data.k=any", want: []string{"one", "two"}},
		{selector: "data.k=any,data.k=w", want: []string{"two"}},
		{selector: "data.k=x"},
		{selector: "data.k!=v", err: "non-exact field matches are not supported by the cache"},
		{selector: "", err: "non-exact field matches are not supported by the cache"},
		{selector: "data.x=v", err: "Index with name field:data.x does not exist"},
		{selector: "metadata.name=one", err: "Index with name field:metadata.name does not exist"},
	} {
		c := s.Client(store.ClientOptions{View: store.NewView(), Indexes: kinds})
		selector, err := fields.ParseSelector(test.selector)
		must(t, err)
		list := &corev1.ConfigMapList{}
		reason(t, c.List(t.Context(), list, client.MatchingFieldsSelector{Selector: selector}), "", test.err)
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the list has %v, want %v", test.selector, got, test.want)
		}
	}
}

// TestIndexesGetCopies lets an index change what it gets.
func TestIndexesGetCopies(t *testing.T) {
	t.Parallel()
	kind := appVersion.WithKind("Widget")
	s := newStore(t, widgets(), widget("one"))
	colors := map[string]client.IndexerFunc{"color": func(obj client.Object) []string {
		u := obj.(*unstructured.Unstructured)
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		delete(u.Object, "spec")
		return []string{color}
	}}
	c := s.Client(store.ClientOptions{
		View: store.NewView(), Indexes: map[schema.GroupKind]map[string]client.IndexerFunc{kind.GroupKind(): colors},
	})
	for range 2 {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		must(t, c.List(t.Context(), list, client.MatchingFields{"color": "blue"}))
		if len(list.Items) != 1 || list.Items[0].Object["spec"] == nil {
			t.Fatalf("the list has %v, want one object with its spec", list.Items)
		}
	}
}
