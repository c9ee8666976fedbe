package store_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

var mapKind = schema.GroupKind{Kind: "ConfigMap"}

// newCache returns a store, a client without a cache, and one with it.
func newCache(t *testing.T, given ...client.Object) (s *store.Store, live, cached *store.Client, view *store.View) {
	t.Helper()
	s, view = newStore(t, given...), store.NewView()
	return s, s.Client(store.ClientOptions{}), s.Client(store.ClientOptions{View: view}), view
}

func TestHoldAt(t *testing.T) {
	t.Parallel()
	s, live, cached, view := newCache(t, configMap("given"), configMap("updated"), configMap("deleted"))
	if !view.HoldAt(mapKind, s.Revision()) {
		t.Error("HoldAt says that it does not hold, want that it does")
	}
	updated := read(t, live, configMap("updated"))
	updated.Data["k"] = "new"
	must(t, live.Update(t.Context(), updated))
	must(t, live.Delete(t.Context(), configMap("deleted")))
	must(t, live.Create(t.Context(), configMap("created")))
	must(t, cached.Create(t.Context(), app("other-kind")))

	want := []string{"deleted", "given", "updated"}
	if got := names(t, cached); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := names(t, cached, client.InNamespace("ns"), client.Limit(1)); !slices.Equal(got, want[:1]) {
		t.Errorf("got %v, want %v", got, want[:1])
	}
	stale := read(t, cached, configMap("updated"))
	if stale.Data["k"] != "v" {
		t.Errorf("the data are %v, want k:v", stale.Data)
	}
	reason(t, cached.Update(t.Context(), stale), "Conflict", "the object has been modified")
	if exists(t, cached, configMap("created")) || !exists(t, cached, app("other-kind")) {
		t.Errorf("the cache has the created one: %t, that of another kind: %t, want the other alone",
			exists(t, cached, configMap("created")), exists(t, cached, app("other-kind")))
	}
	if !view.CatchUp() || view.CatchUp() {
		t.Error("CatchUp reports something else, want true and then false")
	}
	if got := names(t, cached); !slices.Equal(got, []string{"created", "given", "updated"}) {
		t.Errorf("the cache has %v, want [created given updated]", got)
	}
}

func TestCachesNeverGoBack(t *testing.T) {
	t.Parallel()
	s, live, cached, view := newCache(t)
	revision := s.Revision()
	must(t, live.Create(t.Context(), configMap("one")))
	if got := names(t, cached); len(got) != 1 {
		t.Errorf("the cache has %v, want one object", got)
	}
	if view.HoldAt(mapKind, revision) {
		t.Error("HoldAt says that it went back, want that it did not")
	}
	if got := names(t, cached); len(got) != 1 {
		t.Errorf("the cache went back to %v, want one object", got)
	}
	if view.CatchUp() {
		t.Error("CatchUp says that something was held, want nothing")
	}
}

func TestHide(t *testing.T) {
	t.Parallel()
	_, live, cached, view := newCache(t, configMap("one"), configMap("two"))
	view.Hide(store.Key{Kind: mapKind, Namespace: "ns", Name: "one"})
	if exists(t, cached, configMap("one")) || !exists(t, live, configMap("one")) {
		t.Errorf("the object is in the cache: %t, live: %t, want it live alone", exists(t, cached, configMap("one")),
			exists(t, live, configMap("one")))
	}
	if got := names(t, cached); !slices.Equal(got, []string{"two"}) {
		t.Errorf("the cache has %v, want [two]", got)
	}
	reason(t, cached.Create(t.Context(), configMap("one")), "AlreadyExists", "")
	if !view.CatchUp() || !exists(t, cached, configMap("one")) {
		t.Error("the object is hidden after CatchUp, want it shown")
	}
}

// TestHideWhatWasShown hides objects after their kind was read: what the cache has shown stays.
func TestHideWhatWasShown(t *testing.T) {
	t.Parallel()
	key := func(name string) store.Key { return store.Key{Kind: mapKind, Namespace: "ns", Name: name} }
	for name, read := range map[string]func(cached client.Client) bool{
		"get":  func(cached client.Client) bool { return exists(t, cached, configMap("one")) },
		"list": func(cached client.Client) bool { return slices.Contains(names(t, cached), "one") },
	} {
		_, live, cached, view := newCache(t, configMap("one"), configMap("hidden"), app("other-kind"))
		if !view.Hide(key("hidden")) || !read(cached) {
			t.Fatalf("%s: the kind is not shown as it should be, want hidden hidden and one there", name)
		}
		if view.Hide(key("one"), key("hidden")) || !read(cached) {
			t.Errorf("%s: the cache went back, want what was read to stay", name)
		}
		if exists(t, cached, configMap("hidden")) {
			t.Errorf("%s: what was hidden is shown before CatchUp, want it hidden", name)
		}
		other := store.Key{Kind: appVersion.WithKind("App").GroupKind(), Namespace: "ns", Name: "other-kind"}
		if !view.Hide(key("hidden"), other) || exists(t, cached, app("other-kind")) {
			t.Errorf("%s: what was not shown is not hidden, want it hidden", name)
		}
		must(t, live.Delete(t.Context(), configMap("one")))
		if !view.CatchUp() || exists(t, cached, configMap("one")) || !exists(t, cached, configMap("hidden")) {
			t.Errorf("%s: the cache did not catch up, want one gone and hidden there", name)
		}
		if view.Hide(key("hidden")) || !exists(t, cached, configMap("hidden")) {
			t.Errorf("%s: the cache went back after CatchUp, want hidden there", name)
		}
	}
}

func TestCachesAnswerAsCaches(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("one"), configMap("two"))
	index := func(obj client.Object) []string { return []string{obj.GetName(), "all"} }
	cached := s.Client(store.ClientOptions{
		View: store.NewView(), Indexes: map[schema.GroupKind]map[string]client.IndexerFunc{mapKind: {"key": index}},
	})
	list := &corev1.ConfigMapList{}
	for value, want := range map[string]int{"one": 1, "all": 2, "none": 0} {
		must(t, cached.List(t.Context(), list, client.MatchingFields{"key": value}))
		if len(list.Items) != want {
			t.Errorf("%s: got %d items, want %d", value, len(list.Items), want)
		}
	}
	reason(t, cached.List(t.Context(), list, client.MatchingFields{"other": "x"}), "",
		"Index with name field:other does not exist")
	reason(t, cached.List(t.Context(), list, client.Continue("x")), "", "not supported by the cache")
	err := cached.Get(t.Context(), client.ObjectKey{Name: "one"}, configMap("one"))
	reason(t, err, "NotFound", `ConfigMap "one" not found`)
	err = cached.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, app("x"))
	reason(t, err, "NotFound", `App.example.com "x" not found`)
}
