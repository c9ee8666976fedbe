package espalier_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// database is an item: its key, and what is asked of it.
type database struct{ key, asked string }

// databases are the items that the spec has, sorted by key.
func databases(_ context.Context, w *resources.Widget) ([]database, error) {
	var items []database
	for _, key := range slices.Sorted(maps.Keys(w.Spec.Fields)) {
		// What follows a slash makes two fields of one key.
		name, _, _ := strings.Cut(key, "/")
		items = append(items, database{key: name, asked: w.Spec.Fields[key]})
	}
	return items, nil
}

// eachDatabase returns a loop that runs nodes for each item.
func eachDatabase(nodes ...node) node { return loopOf("Databases", nodes...) }

// loopOf is eachDatabase with another name of the loop.
func loopOf(name string, nodes ...node) node {
	return espalier.Each(name, databases, func(d database) string { return d.key }, nodes...)
}

// desiredDatabase is the config map of an item.
func desiredDatabase(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
	item := espalier.ItemOf[database](ctx)
	switch item.asked {
	case "fails":
		return nil, errBoom
	case "waits":
		return nil, espalier.NotReady("NoColor", "there is no color")
	case "nothing":
		return nil, nil
	}
	name := "db-" + item.key
	if item.asked == "that of a" {
		name = "db-a"
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Data:       map[string]string{"asked": item.asked},
	}, nil
}

func database1() *child { return espalier.Owns("Config", desiredDatabase).Reports("ChildReady") }

const (
	labelOfA = "a-3b33d59e5301"
	labelOfB = "b-3b094d89ce1b"
)

func TestItems(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}
	recorded := func(keys []string, notReady ...apis.ItemStatus) func(*resources.Widget) {
		return func(w *resources.Widget) {
			w.Status.ObservedGeneration = w.Generation
			for i := range w.Status.Conditions {
				w.Status.Conditions[i].ObservedGeneration = w.Generation
			}
			w.Status.ForEach = []apis.ForEachStatus{{
				Name: "Databases", Keys: keys, NotReady: notReady, NotReadyCount: int32(len(notReady)),
			}}
		}
	}
	asking := func(pairs ...string) func(*resources.Widget) {
		return func(w *resources.Widget) {
			w.Spec.Fields = map[string]string{}
			for _, pair := range pairs {
				key, asked, _ := strings.Cut(pair, "=")
				w.Spec.Fields[key] = asked
			}
		}
	}
	ready := []func(*resources.Widget){
		is("ChildReady", metav1.ConditionTrue, "Ready", ""), is("Ready", metav1.ConditionTrue, "Ready", ""),
	}
	of := func(key, label, asked string) rtesting.Fixture[*corev1.ConfigMap] {
		return configMap.With(func(c *corev1.ConfigMap) {
			c.Name, c.Labels = "db-"+key, map[string]string{reconcilers.ItemLabel: label}
			c.Data = map[string]string{"asked": asked}
		})
	}
	a, b := of("a", labelOfA, "x"), of("b", labelOfB, "y")
	both := append(slices.Clone(ready), asking("a=x", "b=y"), recorded([]string{"a", "b"}))
	problem := func(key, text string) []func(*resources.Widget) {
		return []func(*resources.Widget){
			is("ChildReady", metav1.ConditionFalse, "InvalidItem", key+": "+text),
			is("Ready", metav1.ConditionFalse, "InvalidItem", "ChildReady: "+key+": "+text),
			recorded([]string{"a", "b"}, apis.ItemStatus{
				Key: key, Status: metav1.ConditionFalse, Reason: "InvalidItem", Message: text,
			}),
		}
	}
	const (
		twice    = `ForEach "Databases" has the items 0 and 1 with the key "a": give each item a key of its own`
		brackets = `ForEach "Databases" has the item 2 with a key that has brackets`
		taken    = `configmaps "db-a" already exists and is controlled by Widget gadget for another item, ` +
			`which has the label espalier.dev/item=` + labelOfA
	)

	rtesting.RootTests{
		"new keys are recorded first": {
			Request:      request,
			GivenObjects: []object{widget.With(asking("a=x", "b=y"))},
			ExpectStatusUpdates: []object{widget.With(asking("a=x", "b=y"),
				is("ChildReady", metav1.ConditionUnknown, "Initializing", "a: Initializing (2 of 2 items are not ready)"),
				is("Ready", metav1.ConditionUnknown, "Initializing", "ChildReady: a: Initializing (2 of 2 items are not ready)"),
				recorded([]string{"a", "b"}))},
			ExpectedResult: reconcilers.Result{RequeueAfter: 1000000000},
		},
		"then their objects are created": {
			Request: request,
			GivenObjects: []object{widget.With(asking("a=x", "b=y"),
				is("ChildReady", metav1.ConditionUnknown, "Initializing", ""), recorded([]string{"a", "b"}))},
			ExpectCreates: []object{a, b},
			ExpectEvents: append(event(corev1.EventTypeNormal, "Created", `Created ConfigMap "db-a"`),
				event(corev1.EventTypeNormal, "Created", `Created ConfigMap "db-b"`)...),
			ExpectStatusUpdates: []object{widget.With(both...)},
		},
		"nothing changed": {
			Request:      request,
			GivenObjects: []object{widget.With(both...), a.With(exists), b.With(exists)},
		},
		"an item fails, and the others are kept": {
			Request: request,
			GivenObjects: []object{widget.With(asking("a=fails", "b=y"), is("ChildReady", metav1.ConditionTrue, "Ready", ""),
				recorded([]string{"a", "b"}))},
			ShouldErr:     true,
			ExpectCreates: []object{b},
			ExpectEvents:  event(corev1.EventTypeNormal, "Created", `Created ConfigMap "db-b"`),
			ExpectStatusUpdates: []object{widget.With(asking("a=fails", "b=y"),
				is("ChildReady", metav1.ConditionTrue, "Ready", ""),
				is("Ready", metav1.ConditionFalse, "Retry", "Widget/Databases[a]/Config: ConfigMap: boom"),
				recorded([]string{"a", "b"}, apis.ItemStatus{
					Key: "a", Status: metav1.ConditionFalse, Reason: "Retry", Message: "boom",
				}))},
		},
		"an item waits": {
			Request:      request,
			GivenObjects: []object{widget.With(append(slices.Clone(both), asking("a=x", "b=waits"))...), a.With(exists), b.With(exists)},
			ExpectStatusUpdates: []object{widget.With(asking("a=x", "b=waits"),
				is("ChildReady", metav1.ConditionFalse, "NoColor", "b: there is no color"),
				is("Ready", metav1.ConditionFalse, "NoColor", "ChildReady: b: there is no color"),
				recorded([]string{"a", "b"}, apis.ItemStatus{
					Key: "b", Condition: "ChildReady", Status: metav1.ConditionFalse, Reason: "NoColor",
					Message: "there is no color",
				}))},
		},
		"an item is gone": {
			Request:       request,
			GivenObjects:  []object{widget.With(append(slices.Clone(both), asking("a=x"))...), a.With(exists), b.With(exists)},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(b.With(exists), scheme)},
			ExpectEvents:  event(corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "db-b"`),
			ExpectStatusUpdates: []object{widget.With(append(slices.Clone(ready), asking("a=x"), recorded([]string{"a", "b"},
				apis.ItemStatus{Key: "b", Status: metav1.ConditionUnknown, Reason: "Withdrawing"}))...)},
		},
		"all of an item is gone": {
			Request:             request,
			GivenObjects:        []object{widget.With(append(slices.Clone(both), asking("a=x"))...), a.With(exists)},
			ExpectStatusUpdates: []object{widget.With(append(slices.Clone(ready), asking("a=x"), recorded([]string{"a"}))...)},
		},
		"the last item is gone": {
			Request:      request,
			GivenObjects: []object{widget.With(append(slices.Clone(ready), recorded([]string{"a"}))...)},
			ExpectStatusUpdates: []object{widget.With(is("Ready", metav1.ConditionTrue, "Ready", ""), recorded(nil), func(w *resources.Widget) {
				w.Status.ForEach = nil
			})},
		},
		"two items have one key": {
			Request: request,
			GivenObjects: []object{widget.With(append(slices.Clone(both), asking("a/1=z", "a/2=z", "b=y"))...),
				a.With(exists), b.With(exists)},
			ExpectStatusUpdates: []object{widget.With(append(problem("a", twice), asking("a/1=z", "a/2=z", "b=y"))...)},
		},
		"a key cannot be recorded": {
			Request: request,
			GivenObjects: []object{widget.With(append(slices.Clone(both), asking("a=x", "b=y", "c[0]=z"))...),
				a.With(exists), b.With(exists)},
			ExpectStatusUpdates: []object{widget.With(append(problem(`"c[0]"`, brackets), asking("a=x", "b=y", "c[0]=z"))...)},
		},
		"two items want one object": {
			Request:      request,
			GivenObjects: []object{widget.With(append(slices.Clone(both), asking("a=x", "b=that of a"))...), a.With(exists)},
			ExpectCreates: []object{b.With(func(c *corev1.ConfigMap) {
				c.Name, c.Data = "db-a", map[string]string{"asked": "that of a"}
			})},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "ConfigMap", "default", "db-a").By("default", "gadget"),
			},
			ExpectEvents: event(corev1.EventTypeWarning, "CreationFailed", `Failed to create ConfigMap "db-a": `+taken),
			ExpectStatusUpdates: []object{widget.With(asking("a=x", "b=that of a"),
				is("ChildReady", metav1.ConditionFalse, "AlreadyExists", "b: "+taken),
				is("Ready", metav1.ConditionFalse, "AlreadyExists", "ChildReady: b: "+taken),
				recorded([]string{"a", "b"}, apis.ItemStatus{
					Key: "b", Condition: "ChildReady", Status: metav1.ConditionFalse, Reason: "AlreadyExists", Message: taken,
				}))},
		},
		"an object without a label is taken over": {
			Request: request,
			GivenObjects: []object{widget.With(both...), b.With(exists),
				a.With(exists, func(c *corev1.ConfigMap) { c.Labels = nil })},
			ExpectApplies: []rtesting.ApplyRef{{ApplyConfiguration: rtesting.Applied(a.With(func(c *corev1.ConfigMap) { c.UID = "db-a-child-uid" })), FieldOwner: "widget-controller"}}, ExpectEvents: event(corev1.EventTypeNormal, "Updated", `Updated ConfigMap "db-a"`),
		},
		"the resource is terminating": {
			Request: request,
			GivenObjects: []object{terminating.With(append(slices.Clone(ready), recorded([]string{"a", "b"}), asking("a=x"))...),
				a.With(exists), b.With(exists)},
			ExpectDeletes: []rtesting.DeleteRef{
				rtesting.NewDeleteRefFromObject(a.With(exists), scheme), rtesting.NewDeleteRefFromObject(b.With(exists), scheme),
			},
			ExpectEvents: append(event(corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "db-a"`),
				event(corev1.EventTypeNormal, "Deleted", `Deleted ConfigMap "db-b"`)...),
			ExpectStatusUpdates: []object{terminating.With(
				is("ChildReady", metav1.ConditionUnknown, "Terminating", "the resource is being deleted"),
				is("Ready", metav1.ConditionFalse, "Terminating", "the resource is being deleted, and "+
					"waits for the finalizer test.espalier.dev/other (not one of this tree)"),
				recorded([]string{"a", "b"}), asking("a=x"))},
		},
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, eachDatabase(database1()))
	})
}
