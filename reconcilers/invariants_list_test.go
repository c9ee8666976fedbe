package reconcilers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// atItsPath is a node that declares nothing and records where it runs.
type atItsPath struct {
	widgetNode
	calls *trace
}

func (n atItsPath) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	n.calls.add("at %s", reconcilers.RetrievePath(ctx))
	return n.widgetNode.Reconcile(ctx, w)
}

func (n atItsPath) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "node", Order: &reconcilers.Order{}}
}

// undeclared is a random tree of sequences, and the same tree of lists.
func (f *forest) undeclared(depth int) (sequence, list widgetNode) {
	var nodes, same []widgetNode
	for range f.IntN(5) {
		switch f.IntN(5) {
		case 0:
			node := f.combined(1)
			nodes, same = append(nodes, node), append(same, node)
		case 1, 2:
			if depth > 0 {
				node, other := f.undeclared(depth - 1)
				nodes, same = append(nodes, node), append(same, other)
			}
		default:
			node := atItsPath{f.leaf(), f.calls}
			nodes, same = append(nodes, node), append(same, node)
		}
	}
	return widgetSequence(nodes), &widgetList{Nodes: same}
}

// Where nothing is declared, a list is a sequence: it makes the same calls at the same paths, with the same outcome, also
// on deletion.
func TestListIsASequence(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	for seed := range uint64(2000) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		sequence, list := f.undeclared(3)
		for name, resource := range map[string]*resources.Widget{
			"": widget.Object(), "terminating": terminatingWidget.Object(),
		} {
			var outcomes [2]string
			for i, node := range []widgetNode{sequence, list} {
				f.calls.calls = nil
				result, err := node.Reconcile(ctx, resource.DeepCopy())
				outcomes[i] = fmt.Sprintf("%v: %+v, %v", f.calls.calls, result, err)
			}
			if outcomes[0] != outcomes[1] {
				t.Fatalf("seed %d, %s: the list gives\n%s, want\n%s\n%s", seed, name, outcomes[1], outcomes[0],
					reconcilers.Describe(list))
			}
		}
		if got, want := reconcilers.Describe(list).String(), reconcilers.Describe(sequence).String(); got != want {
			t.Fatalf("seed %d: the list is described as\n%s, want\n%s", seed, got, want)
		}
	}
}

// declared is a random list whose nodes may declare what they need.
func (f *forest) declared(names *int) (list *widgetList, nodes []*orderly) {
	list = &widgetList{}
	for range 1 + f.IntN(6) {
		*names++
		node := f.calls.orderly(fmt.Sprint("n", *names), []error{nil, nil, errBoom}[f.IntN(3)])
		node.waits = f.IntN(4) == 0
		switch {
		case f.IntN(3) == 0:
			independent(node)
		case len(nodes) > 0 && f.IntN(2) == 0:
			after(nodes[f.IntN(len(nodes))].name)(node)
		}
		list.Nodes, nodes = append(list.Nodes, node), append(nodes, node)
	}
	return list, nodes
}

// A node that declares nothing runs if none before it failed, and one that declares what it needs runs if that is done.
func TestListRunsWhatHasWhatItNeeds(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	for seed := range uint64(1000) {
		f := &forest{Rand: rand.New(rand.NewPCG(seed, 0)), calls: &trace{}}
		list, nodes := f.declared(new(int))
		var want []string
		done, failed := map[string]bool{}, false
		for _, node := range nodes {
			switch {
			case !node.order.Declared && failed:
				continue
			case len(node.order.After) > 0 && !done[node.order.After[0]]:
				want = append(want, fmt.Sprintf("%s: waiting for %q", node.name, node.order.After[0]))
				continue
			}
			want = append(want, node.name)
			done[node.name] = node.err == nil && !node.waits
			failed = failed || node.err != nil
		}
		_, err := list.Reconcile(ctx, widget.Object())
		if f.calls.compare(t, want); t.Failed() {
			t.Fatalf("seed %d: the calls are not as wanted in\n%s", seed, reconcilers.Describe(list))
		}
		if (err != nil) != failed {
			t.Fatalf("seed %d: the error is %v, want one if a node failed, which is %t", seed, err, failed)
		}
	}
}

// Where no node refers to another by name, a list costs what a sequence costs.
func TestListIsAsCheapAsASequence(t *testing.T) {
	ctx := treeContext(t)
	w := widget.Object()
	allocations := func(node widgetNode) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := node.Reconcile(ctx, w); err != nil {
				t.Fatal(err)
			}
		})
	}
	free := &idleInOrder{order: &reconcilers.Order{Declared: true}}
	for name, nodes := range map[string][]widgetNode{
		"nothing declared": {idle{}, idle{}, idle{}}, "independent": {free, idle{}, free},
	} {
		want := allocations(widgetSequence{widgetSequence(nodes), nodes[0], nodes[1]})
		if got := allocations(list(list(nodes...), nodes[0], nodes[1])); got > want {
			t.Errorf("with %s, a list takes %v allocations, want at most %v", name, got, want)
		}
	}
}

// idleInOrder is an idle node with an order.
type idleInOrder struct {
	idle
	order *reconcilers.Order
}

func (n *idleInOrder) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "idleInOrder", Order: n.order}
}
