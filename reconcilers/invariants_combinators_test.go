package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inRequest runs a node with the context of a request, which the forest does not give.
type inRequest struct {
	ctx context.Context
	widgetNode
}

func (n inRequest) Reconcile(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
	return n.widgetNode.Reconcile(n.ctx, w)
}

func (n inRequest) Describe() reconcilers.Description {
	return reconcilers.Describe(n.widgetNode)
}

// combined is a random tree of combinators over leaves.
func (f *forest) combined(depth int) widgetNode {
	if depth == 0 {
		return f.leaf()
	}
	deeper := func() widgetNode { return f.combined(f.IntN(depth)) }
	switch f.IntN(9) {
	case 0:
		return widgetSequence{deeper(), deeper()}
	case 1:
		return widgetAlways{deeper(), deeper(), deeper()}
	case 2:
		return f.when(f.IntN(2) == 0, deeper(), deeper())
	case 3:
		return &widgetTryCatch{Try: deeper(), Catch: f.catch(), Finally: deeper()}
	case 4:
		return &widgetAdvice{Reconciler: deeper()}
	case 5:
		return &widgetOverrideSetup{Reconciler: deeper()}
	case 6:
		return &widgetWhile{Condition: iterationsBelow(f.IntN(3)), Reconciler: deeper()}
	case 7:
		return &widgetForEachString{Items: itemsOf(make([]string, f.IntN(3))...), Reconciler: deeper()}
	default:
		return &widgetWithConfig{Config: sameConfig, Reconciler: deeper()}
	}
}

// catch is nil, or returns what it gets, nothing, or an error.
func (f *forest) catch() func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error) {
	way := f.IntN(4)
	if way == 0 {
		return nil
	}
	return func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
		f.calls.add("catch %v", err)
		switch way {
		case 1:
			return result, err
		case 2:
			return minute, nil
		default:
			return requeue, errBoom
		}
	}
}

// bracketedAlways splits nodes at random into Always of Always, with empty ones in between.
func (f *forest) bracketedAlways(nodes widgetAlways) widgetAlways {
	var bracketed widgetAlways
	for len(nodes) > 0 {
		n := 1 + f.IntN(len(nodes))
		switch part := nodes[:n]; f.IntN(4) {
		case 0:
			bracketed = append(bracketed, part...)
		case 1:
			bracketed = append(bracketed, widgetAlways(nil), part)
		case 2:
			bracketed = append(bracketed, f.bracketedAlways(part), widgetAlways{})
		default:
			bracketed = append(bracketed, &part)
		}
		nodes = nodes[n:]
	}
	return bracketed
}

// repeated is a sequence of n times the node.
func repeated(node widgetNode, n int) widgetSequence {
	return slices.Repeat(widgetSequence{node}, n)
}

// TestAlgebraOfCombinators has the invariants of those combinators that TestAlgebra does not know. Trees are compared by the calls
// they make, the result and the error.
func TestAlgebraOfCombinators(t *testing.T) {
	invariants := map[string]func(f *forest) (left, right widgetNode){
		"it does not matter how an always is split": func(f *forest) (widgetNode, widgetNode) {
			nodes := widgetAlways(f.leaves(f.IntN(12)))
			return nodes, f.bracketedAlways(nodes)
		},
		"it does not matter how an always of trees is split": func(f *forest) (widgetNode, widgetNode) {
			nodes := widgetAlways{f.combined(2), f.combined(2), f.combined(2)}
			return nodes, f.bracketedAlways(nodes)
		},
		"the empty always is the identity": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, widgetAlways{widgetAlways{}, node, widgetAlways(nil)}
		},
		"an always of one is that one": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, widgetAlways{node}
		},
		"the empty always is the empty sequence": func(*forest) (widgetNode, widgetNode) {
			return widgetSequence{}, widgetAlways{}
		},
		"a try alone is that node": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetTryCatch{Try: node}
		},
		"a catch that passes on, and a finally that does nothing, change nothing": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			pass := func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
				return result, err
			}
			return node, &widgetTryCatch{Try: node, Catch: pass, Finally: widgetSequence{}}
		},
		"it does not matter how what comes finally is split": func(f *forest) (widgetNode, widgetNode) {
			a, b, c := f.combined(2), f.combined(2), f.combined(2)
			return &widgetTryCatch{Try: &widgetTryCatch{Try: a, Finally: b}, Finally: c},
				&widgetTryCatch{Try: a, Finally: &widgetTryCatch{Try: b, Finally: c}}
		},
		"a catch may be drawn out of the try": func(f *forest) (widgetNode, widgetNode) {
			a, b, catch := f.combined(2), f.combined(2), f.catch()
			return &widgetTryCatch{Try: a, Catch: catch, Finally: b},
				&widgetTryCatch{Try: &widgetTryCatch{Try: a, Catch: catch}, Finally: b}
		},
		"an advice without functions is its node": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetAdvice{Reconciler: node}
		},
		"an advice that skips its node is the empty sequence": func(f *forest) (widgetNode, widgetNode) {
			return widgetSequence{}, &widgetAdvice{
				Around: func(context.Context, *resources.Widget, widgetNode) (reconcilers.Result, error) {
					return reconcilers.Result{}, nil
				},
				Reconciler: f.combined(3),
			}
		},
		"an after that passes all on is none": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return &widgetAdvice{Reconciler: node}, &widgetAdvice{
				After: func(_ context.Context, _ *resources.Widget, result reconcilers.Result, err error) (reconcilers.Result, error) {
					return result, err
				},
				Reconciler: node,
			}
		},
		"an after is a catch": func(f *forest) (widgetNode, widgetNode) {
			node, catch := f.combined(3), f.catch()
			return &widgetTryCatch{Try: node, Catch: catch}, &widgetAdvice{Reconciler: node, After: catch}
		},
		"another set-up changes no request": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetOverrideSetup{Reconciler: node}
		},
		"a set-up alone is the empty sequence in requests": func(f *forest) (widgetNode, widgetNode) {
			return widgetSequence{}, &widgetOverrideSetup{Setup: f.calls.setup("itself", nil)}
		},
		"while false": func(f *forest) (widgetNode, widgetNode) {
			return widgetSequence{}, &widgetWhile{Condition: iterationsBelow(0), Reconciler: f.combined(3)}
		},
		"while true once": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetWhile{Condition: iterationsBelow(1), Reconciler: node}
		},
		"for each of none": func(f *forest) (widgetNode, widgetNode) {
			return widgetSequence{}, &widgetForEachString{Items: itemsOf[string](), Reconciler: f.combined(3)}
		},
		"for each of one": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetForEachString{Items: itemsOf("a"), Reconciler: node}
		},
		"for each counts as while does": func(f *forest) (widgetNode, widgetNode) {
			node, n := f.combined(2), f.IntN(5)
			return &widgetWhile{Condition: iterationsBelow(n), Reconciler: node, MaxIterations: &n},
				&widgetForEachString{Items: itemsOf(make([]string, n)...), Reconciler: node}
		},
		"the same config": func(f *forest) (widgetNode, widgetNode) {
			node := f.combined(3)
			return node, &widgetWithConfig{Config: sameConfig, Reconciler: node}
		},
	}
	ctx := testContext(t, expectWidget().Config())
	for name, invariant := range invariants {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
				left, right := invariant(f)
				if l, r := f.outcome(inRequest{ctx, left}), f.outcome(inRequest{ctx, right}); l != r {
					t.Fatalf("seed %d: the outcome is\n%s\nwant that of the other way\n%s\n%s\n%s", seed, l, r,
						reconcilers.Describe(left), reconcilers.Describe(right))
				}
			}
		})
	}
}

// A loop that runs n times makes the calls of a sequence of n times its node, and returns its error. Without an error it
// returns its result, too: with one, a sequence drops the results of those before.
func TestLoopsAreSequences(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	for seed := range uint64(300) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		node, n := f.combined(3), f.IntN(6)
		var expected string
		for _, way := range []widgetNode{
			repeated(node, n),
			&widgetWhile{Condition: iterationsBelow(n), Reconciler: node},
			&widgetForEachString{Items: itemsOf(make([]string, n)...), Reconciler: node},
		} {
			f.calls.calls = nil
			result, err := way.Reconcile(ctx, widget.Object())
			actual := fmt.Sprint(f.calls.calls, err)
			if err == nil {
				actual += fmt.Sprintf("%+v", result)
			}
			if expected == "" {
				expected = actual
			}
			if actual != expected {
				t.Fatalf("seed %d: %T gives\n%s\nwant\n%s", seed, way, actual, expected)
			}
		}
	}
}

// An Always runs what its nodes run, however they end, and tells what they tell.
func TestAlwaysIsAllOfItsNodes(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	for seed := range uint64(300) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		nodes := widgetAlways{f.combined(2), f.combined(2), f.combined(2)}
		var expected reconcilers.Result
		var errs []error
		loud := false
		for _, node := range nodes {
			result, err := node.Reconcile(ctx, widget.Object())
			expected = reconcilers.AggregateResults(expected, result)
			errs = append(errs, err)
			loud = loud || err != nil && !errors.Is(err, reconcilers.ErrQuiet)
		}
		calls := f.calls.calls
		f.calls.calls = nil
		result, err := nodes.Reconcile(ctx, widget.Object())
		if result != expected || !slices.Equal(calls, f.calls.calls) {
			t.Fatalf("seed %d: %v with %+v, expected %v with %+v", seed, f.calls.calls, result, calls, expected)
		}
		for _, member := range errs {
			if loud && errors.Is(member, reconcilers.ErrQuiet) {
				continue
			}
			for _, mark := range []error{errBoom, reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers} {
				if errors.Is(member, mark) && !errors.Is(err, mark) {
					t.Fatalf("seed %d: the error is %v, want %q in it", seed, err, mark)
				}
			}
		}
		if loud && errors.Is(err, reconcilers.ErrQuiet) || (err == nil) != (errors.Join(errs...) == nil) {
			t.Fatalf("seed %d: the error is %v, want a loud one if one of %v is, and none if none is", seed, err, errs)
		}
	}
}

// What is set up of any tree is what is set up of its nodes, in order; an OverrideSetup cuts off what is below it, and only that.
func TestOverrideSetupChangesSetupOnly(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	for seed := range uint64(300) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		before, node, after := f.calls.step("before", reconcilers.Result{}, nil), f.combined(3), f.calls.step("after", reconcilers.Result{}, nil)
		tree := widgetAlways{before, &widgetOverrideSetup{Setup: f.calls.setup("instead", nil), Reconciler: node}, after}
		if err := tree.SetupWithManager(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
		f.calls.compare(t, []string{"set up before", "set up instead", "set up after"})
	}
}

// Invariant L3, for finalizers within each other: the outer one is put on first and taken off last, also with nodes between them.
func TestL3NestedFinalizers(t *testing.T) {
	for seed := range uint64(40) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		var names []string
		for i := range 1 + f.IntN(5) {
			names = append(names, fmt.Sprintf("test.espalier.dev/%d", i))
		}
		node := f.calls.step("node", reconcilers.Result{}, nil)
		for _, name := range slices.Backward(names) {
			node = &widgetFinalizer{Finalizer: name, Reconciler: f.wrapped(node)}
		}

		var added, cleared []string
		for i := range names {
			added = append(added, strings.Join(names[:i+1], " "))
			cleared = append(cleared, strings.TrimSpace(theirs+" "+strings.Join(names[:len(names)-1-i], " ")))
		}
		resource := widget.Object()
		finalizersOf(t, f.calls, node, resource)
		f.calls.compare(t, append(slices.Clone(added), "node"))
		if !slices.Equal(resource.Finalizers, names) {
			t.Errorf("seed %d: the finalizers are %v, expected %v", seed, resource.Finalizers, names)
		}

		f.calls.calls = nil
		beingDeleted := widget.With(terminating(append([]string{theirs}, names...)...)).Object()
		finalizersOf(t, f.calls, node, beingDeleted)
		f.calls.compare(t, append([]string{"node"}, cleared...))
		if !slices.Equal(beingDeleted.Finalizers, []string{theirs}) {
			t.Errorf("seed %d: the finalizers are %v, expected %v", seed, beingDeleted.Finalizers, theirs)
		}
		if t.Failed() {
			t.Fatalf("seed %d fails, want it not to, with\n%s", seed, reconcilers.Describe(node))
		}
	}
}

// wrapped is the node in a combinator that runs it once.
func (f *forest) wrapped(node widgetNode) widgetNode {
	ways := combinators(node)
	names := []string{"Always", "TryCatch", "Finally", "Advice", "OverrideSetup", "While", "ForEach", "WithConfig"}
	return ways[names[f.IntN(len(names))]]
}

// finalizersOf reconciles the resource, and records the finalizers that each patch leaves.
func finalizersOf(t *testing.T, calls *trace, node widgetNode, resource *resources.Widget) {
	t.Helper()
	expect := expectWidget(resource)
	expect.WithReactors = []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
		if patch, ok := action.(rtesting.PatchAction); ok {
			var body struct{ Metadata struct{ Finalizers []string } }
			if err := json.Unmarshal(patch.GetPatch(), &body); err != nil {
				t.Error(err)
			}
			calls.add("%s", strings.Join(body.Metadata.Finalizers, " "))
		}
		return false, nil, nil
	}}
	config := expect.Config()
	if err := config.Get(t.Context(), client.ObjectKeyFromObject(resource), resource); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Reconcile(testContext(t, config), resource); err != nil {
		t.Error(err)
	}
}
