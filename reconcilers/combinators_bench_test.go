package reconcilers_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// idle is a node that does nothing.
type idle struct{}

func (idle) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (idle) Reconcile(context.Context, *resources.Widget) (reconcilers.Result, error) {
	return reconcilers.Result{}, nil
}

// treeContext is the context that a root hands to the node below it.
func treeContext(t testing.TB) context.Context {
	var handed context.Context
	root := &widgetRoot{Config: expectWidget(widget).Config(), Reconciler: keeping{idle{}, &handed}}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	return handed
}

// keeping keeps the context that a node is given.
type keeping struct {
	widgetNode
	handed *context.Context
}

func (k keeping) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	*k.handed = ctx
	return k.widgetNode.Reconcile(ctx, w)
}

// BenchmarkCombinators is what each combinator adds to a node that does nothing, which is the bare call.
func BenchmarkCombinators(b *testing.B) {
	nodes := combinators(idle{})
	nodes["bare"] = idle{}
	nodes["Sequence"] = widgetSequence{idle{}}
	nodes["IfThen"] = &widgetIfThen{If: func(context.Context, *resources.Widget) bool { return true }, Then: idle{}}
	nodes["WhileOfHundred"] = &widgetWhile{Condition: iterationsBelow(100), Reconciler: idle{}}
	nodes["ForEachOfHundred"] = &widgetForEachString{Items: itemsOf(make([]string, 100)...), Reconciler: idle{}}
	ctx := treeContext(b)
	w := widget.Object()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := node.Reconcile(ctx, w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// No combinator by itself takes more than a few allocations. The time, which a test cannot tell, is for the benchmark.
func TestCombinatorsAreCheap(t *testing.T) {
	ctx := treeContext(t)
	w := widget.Object()
	for name, node := range combinators(idle{}) {
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := node.Reconcile(ctx, w); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 4 {
			t.Errorf("%s takes %v allocations, want at most 4", name, allocations)
		}
	}
}
