package reconcilers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// forest makes random trees from a seed.
type forest struct {
	*rand.Rand
	calls *trace
	steps int
}

// leaf is a step of its own name. Few fail, so that most trees are run to the end.
func (f *forest) leaf() widgetNode {
	f.steps++
	results := []reconcilers.Result{{}, {}, requeue, minute, {RequeueAfter: time.Hour}, {Priority: new(f.IntN(5))}}
	errs := []error{nil, nil, nil, nil, nil, nil, errBoom, reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers}
	return f.calls.step(fmt.Sprint("step ", f.steps), results[f.IntN(len(results))], errs[f.IntN(len(errs))])
}

func (f *forest) leaves(n int) widgetSequence {
	var nodes widgetSequence
	for range n {
		nodes = append(nodes, f.leaf())
	}
	return nodes
}

// bracketed splits nodes at random into sequences of sequences, with empty ones in between.
func (f *forest) bracketed(nodes widgetSequence) widgetSequence {
	var bracketed widgetSequence
	for len(nodes) > 0 {
		n := 1 + f.IntN(len(nodes))
		switch f.IntN(4) {
		case 0:
			bracketed = append(bracketed, nodes[:n]...)
		case 1:
			bracketed = append(bracketed, widgetSequence(nil), nodes[:n])
		case 2:
			bracketed = append(bracketed, f.bracketed(nodes[:n]), widgetSequence{})
		default:
			part := nodes[:n]
			bracketed = append(bracketed, &part)
		}
		nodes = nodes[n:]
	}
	return bracketed
}

// outcome is all that can be seen of a run.
func (f *forest) outcome(node widgetNode) string {
	f.calls.calls = nil
	result, err := node.Reconcile(context.Background(), widget.Object())
	priority := "none"
	if result.Priority != nil {
		priority = fmt.Sprint(*result.Priority)
	}
	//lint:ignore SA1019 users still set it
	return fmt.Sprintf("%v: requeue %v after %s with priority %s, error %v", f.calls.calls, result.Requeue, result.RequeueAfter, priority, err)
}

func (f *forest) when(holds bool, then, otherwise widgetNode) widgetNode {
	return &widgetIfThen{If: func(context.Context, *resources.Widget) bool { return holds }, Then: then, Else: otherwise}
}

func TestAlgebra(t *testing.T) {
	invariants := map[string]func(f *forest) (left, right widgetNode){
		"it does not matter how a sequence is split": func(f *forest) (widgetNode, widgetNode) {
			nodes := f.leaves(f.IntN(12))
			return nodes, f.bracketed(nodes)
		},
		"the empty sequence is the identity": func(f *forest) (widgetNode, widgetNode) {
			node := f.leaf()
			return node, widgetSequence{widgetSequence{}, node, widgetSequence{}}
		},
		"a sequence of one is that one": func(f *forest) (widgetNode, widgetNode) {
			node := f.leaf()
			return node, widgetSequence{node}
		},
		"if true": func(f *forest) (widgetNode, widgetNode) {
			then := f.leaves(3)
			return then, f.when(true, then, f.leaf())
		},
		"if false": func(f *forest) (widgetNode, widgetNode) {
			otherwise := f.leaves(3)
			return otherwise, f.when(false, f.leaf(), otherwise)
		},
		"if false without else": func(f *forest) (widgetNode, widgetNode) {
			return widgetSequence{}, f.when(false, f.leaf(), nil)
		},
		"not": func(f *forest) (widgetNode, widgetNode) {
			holds, a, b := f.IntN(2) == 0, f.leaf(), f.leaf()
			return f.when(holds, a, b), f.when(!holds, b, a)
		},
		"the same on both sides": func(f *forest) (widgetNode, widgetNode) {
			node := f.leaf()
			return node, f.when(f.IntN(2) == 0, node, node)
		},
		"what comes after may be drawn in": func(f *forest) (widgetNode, widgetNode) {
			holds, a, b, after := f.IntN(2) == 0, f.leaf(), f.leaf(), f.leaf()
			return widgetSequence{f.when(holds, a, b), after}, f.when(holds, widgetSequence{a, after}, widgetSequence{b, after})
		},
		"what comes before may be drawn in": func(f *forest) (widgetNode, widgetNode) {
			holds, a, b, before := f.IntN(2) == 0, f.leaf(), f.leaf(), f.leaf()
			return widgetSequence{before, f.when(holds, a, b)}, f.when(holds, widgetSequence{before, a}, widgetSequence{before, b})
		},
	}
	for name, invariant := range invariants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
				left, right := invariant(f)
				if l, r := f.outcome(left), f.outcome(right); l != r {
					t.Fatalf("seed %d: the outcome is\n%s\nwant that of the other way\n%s\n%s\n%s", seed, l, r,
						reconcilers.Describe(left), reconcilers.Describe(right))
				}
			}
		})
	}
}
