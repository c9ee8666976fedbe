package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func TestFork(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("one"), configMap("two"))
	c := s.Client(store.ClientOptions{})
	for range 3 { // The journal has room for more.
		must(t, c.Create(t.Context(), configMap("three")))
		must(t, c.Delete(t.Context(), configMap("three")))
	}
	must(t, c.Create(t.Context(), configMap("three")))
	since := s.Revision()
	fork := s.Fork()
	forked := fork.Client(store.ClientOptions{})
	must(t, forked.Delete(t.Context(), configMap("one")))
	must(t, c.Create(t.Context(), configMap("four")))
	must(t, forked.Create(t.Context(), definitionObject(t)))
	one := read(t, c, configMap("one"))
	one.Data["k"] = "new"
	must(t, c.Update(t.Context(), one))

	if got := names(t, forked); !slices.Equal(got, []string{"three", "two"}) {
		t.Errorf("the fork has %v, want [three two]", got)
	}
	if got := names(t, c); !slices.Equal(got, []string{"four", "one", "three", "two"}) {
		t.Errorf("the store has %v, want [four one three two]", got)
	}
	noMatch(t, c.Create(t.Context(), widget("one")))
	must(t, forked.Create(t.Context(), widget("one")))
	for name, changes := range map[string][]store.Change{"store": s.Changes(since), "fork": fork.Changes(since)} {
		want := map[string][]string{
			"store": {"ConfigMap ns/four", "ConfigMap ns/one"},
			"fork":  {"ConfigMap ns/one", "CustomResourceDefinition widgets.example.com", "Widget ns/one"},
		}[name]
		var got []string
		for _, change := range changes {
			got = append(got, change.Key.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got the changes %v, want %v", name, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	s := newStore(t, configMap("given"))
	c := s.Client(store.ClientOptions{FieldManager: "me"})
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm))
	cm.Data["k"] = "new"
	must(t, c.Update(t.Context(), cm, client.FieldOwner("other")))
	must(t, c.Delete(t.Context(), cm))
	changes := s.Changes(999)
	if len(changes) != 3 || s.Revision() != 1002 || len(s.Changes(1001)) != 1 || len(s.Changes(1002)) != 0 {
		t.Fatalf("the changes are %+v at revision %d, want 3 at 1002", changes, s.Revision())
	}
	for i, change := range changes {
		if change.Revision != int64(1000+i) || change.Manager != []string{"me", "other", "me"}[i] ||
			(change.Before == nil) != (i == 0) || (change.After == nil) != (i == 2) {
			t.Errorf("the change is %+v, want number %d of a create, an update and a delete", change, i)
		}
	}
	before, after := changes[1].Before.(*corev1.ConfigMap), changes[1].After.(*corev1.ConfigMap)
	if before.Data["k"] != "v" || after.Data["k"] != "new" || after.ResourceVersion != "1001" ||
		changes[2].Before != after {
		t.Errorf("the change is %+v, want k:v before, k:new and the version 1001 after", changes[1])
	}
}

func TestGive(t *testing.T) {
	t.Parallel()
	owner, child := app("owner"), configMap("child")
	owner.ResourceVersion, owner.UID = "999", "1-2-3"
	child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "App", Name: "owner"}}
	s := newStore(t, child, owner)
	c := s.Client(store.ClientOptions{})
	gotOwner, gotChild := read(t, c, owner), read(t, c, child)
	if gotOwner.UID != "1-2-3" || gotOwner.ResourceVersion != "999" || gotOwner.Generation != 1 ||
		!gotOwner.CreationTimestamp.Time.Equal(now) {
		t.Errorf("the owner is %+v, want the UID 1-2-3, the version 999 and the generation 1, created at %v", gotOwner,
			now)
	}
	if gotChild.UID == "" || gotChild.Generation != 0 || gotChild.OwnerReferences[0].UID != "1-2-3" {
		t.Errorf("the child is %+v, want a UID, the generation 0 and the owner 1-2-3", gotChild)
	}
	if child.UID != "" || child.OwnerReferences[0].UID != "" {
		t.Error("what was given was changed, want it as it was")
	}
	versions := map[string]bool{}
	for _, obj := range s.Objects() {
		versions[obj.GetResourceVersion()] = true
	}
	if len(versions) != len(s.Objects()) || s.Revision() != 999 {
		t.Errorf("%d objects have %d versions at revision %d, want one each, at 999", len(s.Objects()), len(versions),
			s.Revision())
	}
	for _, wrong := range []client.Object{
		configMap("child"), configMap(""), widget("one"), withVersion("x"), withVersion("-1"),
	} {
		if err := s.Give(wrong); err == nil {
			t.Errorf("%v was given, want an error", wrong)
		}
	}
}

// TestGiveMany gives more objects than there are versions below those of changes.
func TestGiveMany(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{})
	must(t, c.Create(t.Context(), configMap("created")))
	for i := range 1100 {
		give(t, s, configMap(fmt.Sprint("given-", i)))
	}
	versions := map[string]bool{}
	for _, obj := range s.Objects() {
		versions[obj.GetResourceVersion()] = true
	}
	if len(versions) != len(s.Objects()) {
		t.Errorf("%d objects have %d versions, want one each", len(s.Objects()), len(versions))
	}
	must(t, c.Update(t.Context(), read(t, c, configMap("given-1099"))))
}

func withVersion(version string) client.Object {
	cm := configMap("version")
	cm.ResourceVersion = version
	return cm
}

// TestGiveLater gives an object after a change. It has always been there.
func TestGiveLater(t *testing.T) {
	t.Parallel()
	s, live, cached, view := newCache(t)
	view.HoldAt(mapKind, s.Revision())
	must(t, live.Create(t.Context(), configMap("created")))
	give(t, s, configMap("given"), withVersion("5000"))
	if got := names(t, cached); !slices.Equal(got, []string{"given", "version"}) {
		t.Errorf("the cache has %v, want [given version]", got)
	}
	if len(s.Changes(0)) != 1 || s.Revision() != 5000 {
		t.Errorf("the changes are %v at revision %d, want 1 at 5000", s.Changes(0), s.Revision())
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets(), configMap("b"), configMap("a"), widget("one"), app("one"))
	var got []string
	for _, obj := range s.Objects() {
		if obj.GetObjectKind().GroupVersionKind().Kind != "Namespace" {
			got = append(got, fmt.Sprintf("%T %s", obj, obj.GetName()))
		}
	}
	want := []string{"*store_test.App one", "*v1.ConfigMap a", "*v1.ConfigMap b",
		"*v1.CustomResourceDefinition widgets.example.com", "*unstructured.Unstructured one"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSetNow(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.SetNow(func() time.Time { return now.Add(time.Hour + time.Millisecond) })
	cm := configMap("one")
	must(t, s.Client(store.ClientOptions{}).Create(t.Context(), cm))
	if !cm.CreationTimestamp.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("the object was created at %s, want %s", cm.CreationTimestamp, now.Add(time.Hour))
	}
}

// TestConcurrentUse is for the race detector: records are shared by forks, views and watches.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets(), configMap("given"), widget("given"), app("given"))
	t.Run("workers", func(t *testing.T) {
		for i := range 4 {
			for name, s := range map[string]*store.Store{fmt.Sprint("w", i): s, fmt.Sprint("fork", i): s.Fork()} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					work(t, s, name)
				})
			}
		}
	})
	if got := names(t, s.Client(store.ClientOptions{})); len(got) != 6 {
		t.Errorf("the objects are %v, want 6", got)
	}
}

// work uses a store in all ways. Other workers make the same calls with other names.
func work(t *testing.T, s *store.Store, name string) {
	view := store.NewView()
	c := s.Client(store.ClientOptions{View: view, FieldManager: name})
	ctx := t.Context()
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	defer w.Stop()
	view.HoldAt(mapKind, s.Revision())
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":true}}`))
	for _, obj := range []client.Object{configMap(name), app(name), widget(name)} {
		must(t, c.Create(ctx, obj))
		label(obj)
		must(t, c.Update(ctx, obj))
		must(t, c.Status().Patch(ctx, app("given"), status))
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(appVersion.WithKind("Widget"))
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "given"}, partial))
		must(t, c.Apply(ctx, config(name, "x"), client.ForceOwnership))
	}
	must(t, c.Delete(ctx, app(name)))
	view.CatchUp()
	must(t, c.List(ctx, &corev1.ConfigMapList{}))
	s.CollectGarbage()
	s.Changes(0)
	s.Objects()
	s.Resources()
	<-w.ResultChan()
}

// TestRecordsNeverChange makes all kinds of changes, and looks whether what was stored before is what it was.
func TestRecordsNeverChange(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets(), held(widget("one")), held(app("one")), held(configMap("one")))
	must(t, s.Client(store.ClientOptions{}).Create(t.Context(), deployment("one")))
	type kept struct{ object, before client.Object }
	var all []kept
	keep := func() {
		for _, obj := range s.Objects() {
			all = append(all, kept{obj, obj.DeepCopyObject().(client.Object)})
		}
	}
	c := s.Client(store.ClientOptions{FieldManager: "me"})
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":true}}`))
	for _, change := range []func() error{
		func() error { return c.Apply(t.Context(), applied(t, widget("one")), client.ForceOwnership) },
		func() error { return c.Status().Patch(t.Context(), widget("one"), status) },
		func() error { return c.Status().Patch(t.Context(), app("one"), status) },
		func() error {
			scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))
			return c.SubResource("scale").Patch(t.Context(), deployment("one"), scale,
				client.WithSubResourceBody(&autoscalingv1.Scale{}))
		},
		func() error {
			beta := widget("one")
			beta.SetAPIVersion("example.com/v1beta1")
			labels := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
			return c.Patch(t.Context(), beta, labels)
		},
		func() error { return c.Delete(t.Context(), configMap("one"), client.PropagationPolicy(orphan)) },
		func() error { return c.DeleteAllOf(t.Context(), widget(""), client.InNamespace("ns")) },
		func() error { return c.Delete(t.Context(), namespace("ns")) },
		func() error { return c.Delete(t.Context(), definitionObject(t)) },
		func() error { s.CollectGarbage(); return nil },
	} {
		keep()
		must(t, change())
	}
	for _, k := range all {
		if diff := cmp.Diff(k.before, k.object); diff != "" {
			t.Errorf("%T %s was changed, want it as it was (-before +after):\n%s", k.object, k.object.GetName(), diff)
		}
	}
}
