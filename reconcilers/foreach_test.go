package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemAt returns a node that records the cursor over items of one type.
func itemAt[Item any](calls *trace) widgetNode {
	return syncing(func(ctx context.Context, _ *resources.Widget) {
		cursor, err := reconcilers.CursorStasher[Item]().RetrieveOrError(ctx)
		if err != nil {
			if errors.Is(err, reconcilers.ErrStashValueNotFound) {
				err = reconcilers.ErrStashValueNotFound
			}
			calls.add("%v", err)
			return
		}
		calls.add("%d of %d: %v", cursor.Index, cursor.Length, cursor.Item)
	})
}

func TestForEach(t *testing.T) {
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	items := func(calls *trace, err error, items ...string) func(context.Context, *resources.Widget) ([]string, error) {
		return func(context.Context, *resources.Widget) ([]string, error) {
			calls.add("items")
			return items, err
		}
	}
	// results returns the results, in turn, and fails with err at the last.
	results := func(calls *trace, err error, results ...reconcilers.Result) widgetNode {
		return &widgetSync{SyncWithResult: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
			cursor := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
			calls.add("%s", cursor.Item)
			switch {
			case cursor.Index == len(results)-1:
				return results[cursor.Index], err
			case cursor.Index >= len(results):
				return reconcilers.Result{}, nil
			}
			return results[cursor.Index], nil
		}}
	}
	nodeTests{
		"nil": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: itemsOf[string](), Reconciler: itemAt[string](calls)}
			},
			calls: []string{},
		},
		"none": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: itemsOf([]string{}...), Reconciler: itemAt[string](calls)}
			},
			calls: []string{},
		},
		"in order": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, nil, "a", "b", "a"), Reconciler: itemAt[string](calls)}
			},
			calls: []string{"items", "0 of 3: a", "1 of 3: b", "2 of 3: a"},
		},
		"in order, terminating": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, nil, "a", "b"), Reconciler: calls.step("node", minute, nil)}
			},
			calls:      []string{"items", "node", "node"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"no items for an error": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, errBoom, "a", "b"), Reconciler: itemAt[string](calls)}
			},
			calls:      []string{"items"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"results are aggregated": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, nil, "a", "b", "c"), Reconciler: results(calls, nil, hour, minute, hour)}
			},
			calls:      []string{"items", "a", "b", "c"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"stops at an error": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, nil, "a", "b", "c"), Reconciler: results(calls, errBoom, minute, hour)}
			},
			calls:      []string{"items", "a", "b"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"with ContinueOnError the others run": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{
					Items: items(calls, nil, "a", "b", "c"), Reconciler: results(calls, errBoom, hour, minute),
					ContinueOnError: true,
				}
			},
			calls:      []string{"items", "a", "b", "c"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		// Invariant L6.
		"the delay of the item that fails": {
			node: func(calls *trace) widgetNode {
				return &widgetForEachString{Items: items(calls, nil, "a", "b", "c"), Reconciler: results(calls, reconcilers.ErrQuiet, hour, minute)}
			},
			calls:      []string{"items", "a", "b"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(reconcilers.ErrQuiet, minute)},
		},
	}.run(t)
}

// The cursor is that of the innermost loop over the type, and is gone with the loop, however that ends.
func TestForEachRestoresTheCursor(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	calls := &trace{}
	here := itemAt[string](calls)
	inner := func(node widgetNode) widgetNode {
		return &widgetForEachString{
			Items: func(ctx context.Context, _ *resources.Widget) ([]string, error) {
				outer := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx).Item
				return []string{outer + "1", outer + "2"}, nil
			},
			Reconciler: node,
		}
	}
	reconcile := func(node widgetNode) error {
		_, err := node.Reconcile(ctx, widget.Object())
		return err
	}

	t.Run("nested", func(t *testing.T) {
		calls.calls = nil
		node := &widgetForEachString{Items: itemsOf("a", "b"), Reconciler: widgetSequence{here, inner(here), here}}
		if err := reconcile(widgetSequence{here, node, here}); err != nil {
			t.Error(err)
		}
		calls.compare(t, []string{
			"value not found in stash",
			"0 of 2: a", "0 of 2: a1", "1 of 2: a2", "0 of 2: a",
			"1 of 2: b", "0 of 2: b1", "1 of 2: b2", "1 of 2: b",
			"value not found in stash",
		})
	})
	t.Run("after an error", func(t *testing.T) {
		calls.calls = nil
		failing := widgetSequence{here, calls.step("fails", reconcilers.Result{}, errBoom)}
		node := &widgetForEachString{Items: itemsOf("a"), Reconciler: widgetAlways{inner(failing), here}}
		if err := reconcile(node); err != errBoom {
			t.Errorf("the error is %v, want %v", err, errBoom)
		}
		if err := reconcile(here); err != nil {
			t.Error(err)
		}
		calls.compare(t, []string{"0 of 2: a1", "fails", "0 of 1: a", "value not found in stash"})
	})
	t.Run("after a panic", func(t *testing.T) {
		calls.calls = nil
		panicking := syncing(func(context.Context, *resources.Widget) { panic(errBoom) })
		recovering := func(node widgetNode) widgetNode {
			return syncing(func(ctx context.Context, w *resources.Widget) {
				defer func() { calls.add("recovered %v", recover()) }()
				_, _ = node.Reconcile(ctx, w)
			})
		}
		node := &widgetForEachString{Items: itemsOf("a"), Reconciler: widgetSequence{recovering(inner(panicking)), here, panicking}}
		if err := reconcile(widgetSequence{recovering(node), here}); err != nil {
			t.Error(err)
		}
		calls.compare(t, []string{"recovered boom", "0 of 1: a", "recovered boom", "value not found in stash"})
	})
	t.Run("what others stashed there", func(t *testing.T) {
		key := reconcilers.CursorStasher[string]().Key()
		for _, value := range []any{nil, 42, reconcilers.Cursor[string]{Index: 7}} {
			stash.StoreValue(ctx, key, value)
			if err := reconcile(&widgetForEachString{Items: itemsOf("a"), Reconciler: here}); err != nil {
				t.Error(err)
			}
			if actual := stash.RetrieveValue(ctx, key); actual != value || !stash.HasValue(ctx, key) {
				t.Errorf("the stash holds %v, expected %v", actual, value)
			}
		}
	})
}

// A loop over nothing needs no stash, any other needs one as every user of the stash does.
func TestForEachNeedsAStashForItems(t *testing.T) {
	node := &widgetForEachString{Items: itemsOf[string](), Reconciler: widgetSequence{}}
	if _, err := node.Reconcile(t.Context(), widget.Object()); err != nil {
		t.Errorf("returned %v", err)
	}
}

// ConfigMap is called as a type of another package is.
type ConfigMap struct{}

func localTypeKey() (stash.Key, func(context.Context)) {
	type local struct{}
	return keyOver[local]()
}

func genericLocalTypeKey[T any]() (stash.Key, func(context.Context)) {
	type local struct{ _ T }
	return keyOver[local]()
}

// keyOver returns the key of the cursor over the type, and what runs a loop over one item of it, which must find
// itself.
func keyOver[Item any]() (stash.Key, func(context.Context)) {
	stasher := reconcilers.CursorStasher[Item]()
	return stasher.Key(), func(ctx context.Context) {
		node := &reconcilers.ForEach[*resources.Widget, Item]{
			Items: itemsOf(make([]Item, 1)...),
			Reconciler: &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
				cursor, err := stasher.RetrieveOrError(ctx)
				if err == nil && cursor.Length != 1 {
					err = fmt.Errorf("the cursor is %v", cursor)
				}
				return err
			}},
		}
		if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
			panic(err)
		}
	}
}

// Each type of items has a cursor of its own, and none panics, although all these items are nil or zero.
func TestCursorsOfDifferentTypes(t *testing.T) {
	type local struct{}
	type pair struct {
		key string
		run func(context.Context)
	}
	of := func(key stash.Key, run func(context.Context)) pair { return pair{string(key), run} }
	seen := map[string]string{}
	for name, pair := range map[string]pair{
		"string":                     of(keyOver[string]()),
		"int":                        of(keyOver[int]()),
		"any":                        of(keyOver[any]()),
		"error":                      of(keyOver[error]()),
		"*string":                    of(keyOver[*string]()),
		"[]string":                   of(keyOver[[]string]()),
		"[]int":                      of(keyOver[[]int]()),
		"map[string]string":          of(keyOver[map[string]string]()),
		"struct{}":                   of(keyOver[struct{}]()),
		"func()":                     of(keyOver[func()]()),
		"chan int":                   of(keyOver[chan int]()),
		"client.Object":              of(keyOver[client.Object]()),
		"corev1.ConfigMap":           of(keyOver[corev1.ConfigMap]()),
		"*corev1.ConfigMap":          of(keyOver[*corev1.ConfigMap]()),
		"[]*corev1.ConfigMap":        of(keyOver[[]*corev1.ConfigMap]()),
		"*unstructured.Unstructured": of(keyOver[*unstructured.Unstructured]()),
		"ours":                       of(keyOver[ConfigMap]()),
		"*ours":                      of(keyOver[*ConfigMap]()),
		"corev1.ServicePort":         of(keyOver[corev1.ServicePort]()),
		"networkingv1.IngressRule":   of(keyOver[networkingv1.IngressRule]()),
		"Cursor[string]":             of(keyOver[reconcilers.Cursor[string]]()),
		"Cursor[int]":                of(keyOver[reconcilers.Cursor[int]]()),
		"local":                      of(keyOver[local]()),
		"local elsewhere":            of(localTypeKey()),
		"local to int":               of(genericLocalTypeKey[int]()),
		"local to string":            of(genericLocalTypeKey[string]()),
	} {
		const prefix = "reconciler.io/runtime:cursor:"
		if !strings.HasPrefix(pair.key, prefix) || pair.key == prefix {
			t.Errorf("the key of %s is %q, want it to begin with %q and go on", name, pair.key, prefix)
		}
		if other, ok := seen[pair.key]; ok {
			t.Errorf("%s and %s have the same key, %q, want one for each", name, other, pair.key)
		}
		seen[pair.key] = name
		ctx := testContext(t, expectWidget().Config())
		if err := neverPanics(t, name, func() error { pair.run(ctx); return nil }); err != nil {
			t.Error(err)
		}
	}
	for expected, name := range map[string]string{
		"reconciler.io/runtime:cursor:string":                       "string",
		"reconciler.io/runtime:cursor:[]string":                     "[]string",
		"reconciler.io/runtime:cursor:k8s.io/api/core/v1.ConfigMap": "corev1.ConfigMap",
	} {
		if seen[expected] != name {
			t.Errorf("%q is the key of %q, want it to be that of %q", expected, seen[expected], name)
		}
	}
}

func TestForEachValidate(t *testing.T) {
	items := itemsOf("a")
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":         {node: &widgetForEachString{}, shallow: `ForEach "ForEach" must implement Reconciler`},
		"no Reconciler": {node: &widgetForEachString{Name: "mine", Items: items}, shallow: `ForEach "mine" must implement Reconciler`},
		"no Items":      {node: &widgetForEachString{Reconciler: valid}, shallow: `ForEach "ForEach" must implement Items`},
		"valid":         {node: &widgetForEachString{Items: items, Reconciler: valid}},
		"bad node": {
			node:      &widgetForEachString{Items: items, Reconciler: invalid},
			recursive: `ForEach "ForEach" must have a valid Reconciler: ` + missing,
		},
	}.run(t)
}
