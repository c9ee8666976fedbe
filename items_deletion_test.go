package espalier_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// once reconciles once.
func (w *world) once(t *testing.T) error {
	t.Helper()
	key := client.ObjectKeyFromObject(widget.Object())
	_, err := w.root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: key})
	return err
}

// registers returns a node that notes its calls, and is called at the end of an item, too, where it fails as fails says.
func registers(name string, calls *[]string, fails func(key string) bool) *espalier.Run[*resources.Widget] {
	return espalier.Runs(name, func(ctx context.Context, _ *resources.Widget) error {
		*calls = append(*calls, "+"+name+reconcilers.ItemKey(ctx))
		return nil
	}).Finalizes("test.espalier.dev/"+strings.ToLower(name), func(ctx context.Context, _ *resources.Widget) error {
		*calls = append(*calls, "-"+name+reconcilers.ItemKey(ctx))
		if fails(reconcilers.ItemKey(ctx)) {
			return errBoom
		}
		return nil
	})
}

func noItem(string) bool { return false }

// Two items of one key, and a key that no item may have, do not keep the resource from being deleted.
func TestItemsOfOneKeyAreDeleted(t *testing.T) {
	var calls []string
	w := worldOf(t, eachDatabase(registers("R", &calls, noItem), database1()))
	w.ask(t, map[string]string{"a": "x", "b": "y"})
	w.rest(t)
	w.ask(t, map[string]string{"a/1": "x", "a/2": "x", "b": "y", "c[0]": "z"})
	_ = w.once(t)
	calls = nil
	if err := w.Delete(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	w.rest(t)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(widget.Object()), &resources.Widget{}); err == nil {
		t.Errorf("the deleted resource has the finalizers %v, want it gone", w.widget(t).Finalizers)
	}
	slices.Sort(calls)
	if want := []string{"-Ra", "-Rb"}; !slices.Equal(slices.Compact(calls), want) {
		t.Errorf("the calls are %v, want %v", calls, want)
	}
}

// One item that cannot be finished keeps the finalizer, and no other item.
func TestItemsFinishAlone(t *testing.T) {
	var calls []string
	stuck := true
	w := worldOf(t, eachDatabase(
		registers("R", &calls, func(key string) bool { return stuck && key == "b" }),
		registers("S", &calls, noItem).After("R"), database1().After("S")))
	w.ask(t, map[string]string{"a": "x", "b": "y", "c": "z"})
	w.rest(t)
	calls = nil
	w.ask(t, map[string]string{"a": "x"})
	for range 6 {
		_ = w.once(t)
	}
	got := w.widget(t)
	if keys := got.Status.ForEach[0].Keys; !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("the recorded keys are %v, want a and b", keys)
	}
	if len(got.Finalizers) != 2 {
		t.Errorf("the finalizers are %v, want both", got.Finalizers)
	}
	if w.configMap(t, "db-a") == nil || w.configMap(t, "db-b") != nil || w.configMap(t, "db-c") != nil {
		t.Error("other objects are left than db-a alone")
	}
	for _, key := range []string{"b", "c"} {
		s, r := slices.Index(calls, "-S"+key), slices.Index(calls, "-R"+key)
		if s < 0 || r < s {
			t.Errorf("the calls are %v, want S finished before R for %s", calls, key)
		}
	}
	// The key is used again before its item is finished.
	w.ask(t, map[string]string{"a": "x", "b": "again"})
	w.rest(t)
	if got := w.configMap(t, "db-b"); got == nil || got.Data["asked"] != "again" {
		t.Errorf("the object of the item that came back is %v, want it", got)
	}
	if err := w.Delete(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		_ = w.once(t)
	}
	if got := w.widget(t); !slices.Contains(got.Finalizers, "test.espalier.dev/r") {
		t.Errorf("the finalizers are %v, want that of the item that cannot be finished", got.Finalizers)
	}
	stuck = false
	w.rest(t)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(widget.Object()), &resources.Widget{}); err == nil {
		t.Errorf("the deleted resource has the finalizers %v, want it gone", w.widget(t).Finalizers)
	}
}

// While keys are recorded, nothing exists of their items. Nobody says that they are ready, nor goes on.
func TestNewItemsAreNotReady(t *testing.T) {
	f := &feature.Feature[*resources.Widget]{
		Name:       "All",
		Gate:       func(_ context.Context, w *resources.Widget) gate.Gate { return gate.When(!asks(w, "off")) },
		Reconciler: eachDatabase(espalier.Owns("Config", desiredDatabase)),
	}
	w := worldOf(t, espalier.Steps[*resources.Widget](f, keeps("app").After("All")))
	w.ask(t, map[string]string{"a": "x", "b": "y"})
	if err := w.once(t); err != nil {
		t.Fatal(err)
	}
	if got := reconcilers.GetCondition(w.widget(t), "AllReady"); got == nil || got.Status != metav1.ConditionUnknown {
		t.Errorf("the condition is %v before an object exists, want it Unknown", got)
	}
	if w.configMap(t, "app") != nil {
		t.Error("what is after the items was made before them")
	}
	w.rest(t)
	if got := reconcilers.GetCondition(w.widget(t), "AllReady"); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %v, want it True", got)
	}
	if w.configMap(t, "app") == nil || w.configMap(t, "db-a") == nil {
		t.Errorf("an object is missing: %v", w.widget(t).Status.Conditions)
	}
	w.ask(t, map[string]string{"a": "x", "off": "yes"})
	w.rest(t)
	if got := w.widget(t).Status.ForEach; w.configMap(t, "db-a") != nil || w.configMap(t, "db-b") != nil || len(got) > 0 {
		t.Errorf("objects, or the records %v, are left while the gate is off", got)
	}
	w.ask(t, map[string]string{"b": "y"})
	w.rest(t)
	if w.configMap(t, "db-b") == nil {
		t.Error("db-b is missing after the gate was on again")
	}
}

// Whatever is allowed in a key makes a label that the API server accepts, and no two keys make one.
func TestItemsWithStrangeKeys(t *testing.T) {
	keys := []string{"ü", "ö", "a b", "a.b", "-", "..", "A", "a", "日本語", strings.Repeat("x", 253),
		strings.Repeat("x", 252), strings.Repeat("-", 60) + "a", strings.Repeat("ü", 100), "%d", "1"}
	w := worldOf(t, espalier.Each("Databases",
		func(context.Context, *resources.Widget) ([]string, error) { return keys, nil },
		func(key string) string { return key },
		espalier.Owns("Config", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
			made.Name = fmt.Sprint("db-", slices.Index(keys, reconcilers.ItemKey(ctx)))
			return made, nil
		}).Reports("ChildReady")))
	w.rest(t)
	labels := map[string]bool{}
	for i, key := range keys {
		made := w.configMap(t, fmt.Sprint("db-", i))
		if made == nil {
			t.Errorf("there is no object for the key %q: %v", key, reconcilers.GetCondition(w.widget(t), "ChildReady"))
			continue
		}
		labels[made.Labels[reconcilers.ItemLabel]] = true
	}
	if len(labels) != len(keys) {
		t.Errorf("%d keys have %d labels: %v", len(keys), len(labels), labels)
	}
}

// A feature of an item depends on a condition of the item alone.
func TestItemsWithPrerequisites(t *testing.T) {
	w := worldOf(t, eachDatabase(database1().Labeled(), &feature.Feature[*resources.Widget]{
		Name: "Extra", Prerequisites: []feature.Prerequisite[*resources.Widget]{feature.DependsOn[*resources.Widget]("ChildReady")},
		Reconciler: espalier.Owns("Extra", func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: reconcilers.ItemKey(ctx)}}, nil
		}).Labeled(),
	}))
	w.ask(t, map[string]string{"a": "waits", "b": "y"})
	w.rest(t)
	if w.configMap(t, "a") != nil || w.configMap(t, "b") == nil {
		t.Errorf("the feature of the item that waits exists: %t, that of the other one: %t",
			w.configMap(t, "a") != nil, w.configMap(t, "b") != nil)
	}
	w.ask(t, map[string]string{"a": "x", "b": "y"})
	w.rest(t)
	if w.configMap(t, "a") == nil {
		t.Error("the feature of the item that does not wait any more is missing")
	}
	// A key that comes back waits again.
	w.ask(t, map[string]string{"b": "y"})
	w.rest(t)
	var names []string
	for _, record := range w.widget(t).Status.Features {
		names = append(names, record.Name)
	}
	if diff := gocmp.Diff([]string{"Extra[b]"}, names); diff != "" {
		t.Errorf("the records differ (-want, +got):\n%s", diff)
	}
	w.ask(t, map[string]string{"a": "waits", "b": "y"})
	w.rest(t)
	if w.configMap(t, "a") != nil {
		t.Error("the feature of a new item does not wait")
	}
}

// Without a root the items are as below one.
func TestItemsAreEmbedded(t *testing.T) {
	var calls []string
	w := worldOf(t, eachDatabase())
	config := reconcilers.Config{Client: w.Client, APIReader: w.Client, Recorder: &record.FakeRecorder{}}
	embedded := reconcilers.Embed(config, eachDatabase(registers("R", &calls, noItem), database1()))
	for _, asked := range []map[string]string{{"a": "x", "b": "y"}, {"b": "y"}, {}} {
		w.ask(t, asked)
		for range 6 {
			got := w.widget(t)
			if _, err := embedded.Reconcile(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			if err := w.Status().Update(t.Context(), got); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := w.configMap(t, "db-a") != nil, w.configMap(t, "db-b") != nil; a != (asked["a"] != "") || b != (asked["b"] != "") {
			t.Errorf("asked for %v, db-a exists: %t, db-b exists: %t", asked, a, b)
		}
	}
	if got := w.widget(t); len(got.Finalizers) > 0 || len(got.Status.ForEach) > 0 {
		t.Errorf("the finalizers %v and the records %v are left, want none", got.Finalizers, got.Status.ForEach)
	}
}

// The cost of a request grows with the number of items, and not with its square.
func BenchmarkItems(b *testing.B) {
	for _, n := range []int{50, 200, 800} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worldOf(b, eachDatabase(database1().Labeled()))
			asked := map[string]string{}
			for i := range n {
				asked[fmt.Sprint("key-", i)] = "x"
			}
			var got resources.Widget
			if err := w.Get(context.Background(), client.ObjectKeyFromObject(widget.Object()), &got); err != nil {
				b.Fatal(err)
			}
			got.Spec.Fields = asked
			if err := w.Update(context.Background(), &got); err != nil {
				b.Fatal(err)
			}
			request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(widget.Object())}
			for range 4 {
				if _, err := w.root.Reconcile(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := w.root.Reconcile(context.Background(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
