package espalier_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/tracker"

	gocmp "github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// worldOf returns a world with objects, in which an operator has one node.
func worldOf(t testing.TB, n node, objects ...client.Object) *world {
	t.Helper()
	w := &world{Client: fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget", UID: "gadget-uid"}},
	).WithObjects(objects...).Build()}
	w.root = espalier.For(reconcilers.Config{Client: w.Client, APIReader: w.Client, Recorder: &record.FakeRecorder{},
		Tracker: tracker.New(scheme, 0)}, n)
	return w
}

// configMap returns a config map, or nil if there is none of the name.
func (w *world) configMap(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	var found corev1.ConfigMap
	switch err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &found); {
	case apierrs.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return &found
}

// widget returns the widget.
func (w *world) widget(t *testing.T) *resources.Widget {
	t.Helper()
	var found resources.Widget
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "gadget"}, &found); err != nil {
		t.Fatal(err)
	}
	return &found
}

// An object of another item is not deleted by its name.
func TestItemsAbsentByName(t *testing.T) {
	made := func(name, item string) client.Object {
		return configMap.With(exists, func(c *corev1.ConfigMap) {
			c.Name, c.Labels = name, map[string]string{reconcilers.NodeLabel: "Config"}
			if item != "" {
				c.Labels[reconcilers.ItemLabel] = item
			}
		}).Object()
	}
	const other = `ConfigMap default/db-a is to be absent, and stays: ` +
		`it was made for an item, and has the label espalier.dev/item=` + labelOfB
	desired := func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		if !reconcilers.HasItem(ctx) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-a"}}, nil
		}
		return desiredDatabase(ctx, w)
	}
	absent := func() *child { return espalier.Owns("Config", desired).Labeled().Absent().Reports("ChildReady") }
	for name, row := range map[string]struct {
		node    node
		given   client.Object
		stays   bool
		message string
	}{
		"it is that of the item":                       {eachDatabase(absent()), made("db-a", labelOfA), false, ""},
		"it was made before there were items":          {eachDatabase(absent()), made("db-a", ""), false, ""},
		"it is that of another item":                   {eachDatabase(absent()), made("db-a", labelOfB), true, "a: " + other},
		"it is that of an item, and the node has none": {absent(), made("db-a", labelOfB), true, other},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, row.node, row.given)
			w.ask(t, map[string]string{"a": "x"})
			w.rest(t)
			if stays := w.configMap(t, "db-a") != nil; stays != row.stays {
				t.Errorf("the object is there: %t, want %t", stays, row.stays)
			}
			if got := reconcilers.GetCondition(w.widget(t), "ChildReady"); got == nil || got.Message != row.message {
				t.Errorf("the condition is %v, want the message %q", got, row.message)
			}
		})
	}
}

// The names that an absent object had are not asked for when only the key of the item is known.
func TestItemsAbsentAreGone(t *testing.T) {
	items := func(ctx context.Context, w *resources.Widget) (items []*database, _ error) {
		all, err := databases(ctx, w)
		for i := range all {
			items = append(items, &all[i])
		}
		return items, err
	}
	w := worldOf(t, espalier.Each("Databases", items, func(d *database) string { return d.key },
		espalier.Owns("Config", func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: espalier.ItemOf[*database](ctx).key},
			}, nil
		}).Labeled().Absent()))
	w.ask(t, map[string]string{"a": "x"})
	w.rest(t)
	w.ask(t, nil)
	w.rest(t)
	if got := w.widget(t).Status.ForEach; len(got) > 0 {
		t.Errorf("the records are %v, want none", got)
	}
}

// What an item has in other namespaces, and what is not watched, goes with the item.
func TestItemsAnywhere(t *testing.T) {
	in := func(namespace, prefix string) func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
		return func(ctx context.Context, _ *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefix + reconcilers.ItemKey(ctx)},
			}, nil
		}
	}
	for name, n := range map[string]*child{
		"AnyNamespace": espalier.Owns("Config", in("other", "db-")).AnyNamespace().Reports("ChildReady"),
		"Unowned":      espalier.Owns("Config", in("other", "db-")).Unowned().Reports("ChildReady"),
		"Unwatched":    espalier.Owns("Config", in("default", "db-")).Unwatched().Reports("ChildReady"),
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, eachDatabase(n), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
			for _, asked := range []map[string]string{{"a": "x", "b": "y"}, {"b": "y"}, {"b": "y", "c": "z"}, nil} {
				w.ask(t, asked)
				w.rest(t)
				var list corev1.ConfigMapList
				if err := w.List(t.Context(), &list); err != nil {
					t.Fatal(err)
				}
				want, got := map[string]bool{}, map[string]bool{}
				for key := range asked {
					want["db-"+key] = true
				}
				for _, object := range list.Items {
					got[object.Name] = true
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("asked for %v, the objects differ (-want, +got):\n%s", asked, diff)
				}
				if finalizers := w.widget(t).Finalizers; (len(finalizers) > 0) != (name == "AnyNamespace" && asked != nil) {
					t.Errorf("asked for %v, the finalizers are %v", asked, finalizers)
				}
			}
		})
	}
}

// An item that is gone while everything is suspended goes as always, and a new one stays suspended.
func TestItemsAreSuspended(t *testing.T) {
	w := worldOf(t, &feature.Feature[*resources.Widget]{
		Name: "All", Suspended: func(_ context.Context, w *resources.Widget) (bool, error) { return true, nil },
		Reconciler: eachDatabase(database1()),
	})
	w.ask(t, map[string]string{"a": "x", "b": "y"})
	if err := w.once(t); err != nil {
		t.Fatal(err)
	}
	if got := reconcilers.GetCondition(w.widget(t), "AllReady"); got == nil || got.Status == metav1.ConditionTrue {
		t.Errorf("the condition is %v before the items are recorded, want it not True", got)
	}
	w.rest(t)
	if got := reconcilers.GetCondition(w.widget(t), "AllReady"); got == nil || got.Reason != "Suspended" {
		t.Errorf("the condition is %v, want it Suspended", got)
	}
	w.ask(t, map[string]string{"b": "y"})
	w.rest(t)
	if a, b := w.configMap(t, "db-a"), w.configMap(t, "db-b"); a != nil || b == nil {
		t.Errorf("db-a is there: %t, db-b is there: %t, want b alone", a != nil, b != nil)
	}
	if got := w.widget(t).Status.ForEach; len(got) != 1 || len(got[0].Keys) != 1 || got[0].NotReadyCount != 0 {
		t.Errorf("the records are %v, want that of b", got)
	}
	if got := reconcilers.GetCondition(w.widget(t), "AllReady"); got == nil || got.Reason != "Suspended" {
		t.Errorf("the condition is %v, want it Suspended", got)
	}
}
