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

var cursor = reconcilers.CursorStasher[database]()

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
func eachDatabase(nodes ...node) node {
	return &reconcilers.ForEach[*resources.Widget, database]{
		Name: "Databases", Items: databases, Key: func(d database) string { return d.key },
		Reconciler: espalier.Steps(nodes...),
	}
}

// desiredDatabase is the config map of an item.
func desiredDatabase(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
	item := cursor.RetrieveOrDie(ctx).Item
	switch item.asked {
	case "fails":
		return nil, errBoom
	case "waits":
		return nil, espalier.NotReady("NoColor", "there is no color")
	case "nothing":
		return nil, nil
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db-" + item.key},
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
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, eachDatabase(database1()))
	})
}
