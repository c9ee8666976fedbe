package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/graph"
	"github.com/espalier-dev/espalier/stash"
)

// Order says what a node needs of the nodes before it, and what it provides. A node has it in its [Description].
//
// In a [List], a node with Declared is called also after an earlier node has failed. It asks [Unmet] whether it has
// what it needs, and decides what to do while it has to wait. A node without Declared is not called then.
type Order struct {
	// Declared is true if the node says itself what it needs, which may be nothing: only that stops it. If it is false,
	// the node needs every node before it.
	Declared bool
	// After are the names of nodes that have to be done before the node, of the nearest [List] around it.
	After []string
	// Needs are the keys of values that have to be in the stash.
	Needs []stash.Key
	// Yields are the keys of values that the node stores in the stash.
	Yields []stash.Key
}

// Unmet returns what the node of ctx, with that order, waits for in this request, such as
//
//	waiting for data "example.com/address", waiting for "job"
//
// It is empty if the node has what it needs. A node waits for the nodes of After that did not run, returned an error,
// or called [NotDone], and for values that are not in the stash. A name that the [List] does not have does not count;
// the root refuses it in its set-up. Without a stash, no value is there, and the text says why.
func Unmet(ctx context.Context, order *Order) string {
	if order == nil {
		return ""
	}
	var data, nodes []string
	var noStash error
	if len(order.Needs) > 0 {
		noStash = stash.Check(ctx)
	}
	for _, key := range order.Needs {
		if noStash != nil || !stash.HasValue(ctx, key) {
			data = append(data, fmt.Sprintf("%q", key))
		}
	}
	if len(order.After) > 0 {
		run := contextOf(ctx).list
		for _, name := range order.After {
			if run.waits(name) {
				nodes = append(nodes, fmt.Sprintf("%q", name))
			}
		}
	}
	var texts []string
	if len(data) > 0 {
		texts = append(texts, "waiting for data "+strings.Join(data, ", "))
		if noStash != nil {
			texts = append(texts, "which no node can store: "+noStash.Error())
		}
	}
	if len(nodes) > 0 {
		texts = append(texts, "waiting for "+strings.Join(nodes, ", "))
	}
	return strings.Join(texts, ", ")
}

// NotDone says that the node of ctx is not done in this request, although it returns no error: it waits, or its object
// is not ready or not gone. Nodes that are [Order.After] it, or after a node around it, wait. On deletion the nodes
// that it needs wait. It may be called concurrently.
func NotDone(ctx context.Context) {
	for run := contextOf(ctx).list; run != nil; run = run.outer {
		run.notDone.Store(true)
	}
}

// listRun is a run of a list in a request. A list has none if no node in it refers to another by name.
type listRun struct {
	plan *graph.Plan
	// done are the nodes that are done, by index.
	done []bool
	// notDone is true if NotDone was called since the current node started.
	notDone atomic.Bool
	// outer is the run of the list around it.
	outer *listRun
}

// withListRun returns the context for the nodes of a list, and the run that it has.
func withListRun(ctx context.Context, plan *graph.Plan) (context.Context, *listRun) {
	run := &listRun{plan: plan, done: make([]bool, len(plan.Declared)), outer: contextOf(ctx).list}
	return derive(ctx, func(s *treeContext) { s.list = run }), run
}

// start notes that the next node starts. It does nothing for nil.
func (r *listRun) start() {
	if r != nil {
		r.notDone.Store(false)
	}
}

// end notes how a node ended. It does nothing for nil.
func (r *listRun) end(node int, err error) {
	if r != nil {
		r.done[node] = err == nil && !r.notDone.Load()
	}
}

// waits reports whether the node of that name is not done. It returns false for nil.
func (r *listRun) waits(name string) bool {
	if r == nil {
		return false
	}
	node, known := r.plan.Indexes[name]
	return known && !r.done[node]
}

// checkOrder returns an error if a node of a tree can never have what it needs.
func checkOrder(tree Description) error {
	root := graphOf(tree, "")
	return graph.Check(&root)
}

// graphOf returns what decides about order of a described node with a path below parent.
func graphOf(d Description, parent string) graph.Node {
	path := d.pathBelow(parent)
	n := graph.Node{
		Name: d.Name, Path: path, List: d.list, Alternatives: d.alternatives, Closed: d.items,
		Barrier: d.Order == nil || len(d.Finalizers) > 0,
		// Lists of others have no function of the author, so they store nothing.
		StoresAny: d.Order == nil && (len(d.Nodes) == 0 || d.Nodes[0].Index == ""),
	}
	if d.Order != nil {
		n.Declared, n.After = d.Order.Declared, d.Order.After
		n.Needs, n.Yields = keysOf(d.Order.Needs), keysOf(d.Order.Yields)
	}
	for _, nested := range d.Nodes {
		n.Nodes = append(n.Nodes, graphOf(nested, path))
	}
	return n
}

func keysOf(keys []stash.Key) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = string(key)
	}
	return texts
}

// IsAwaited reports whether nodes may be [Order.After] the node of ctx, or after a node around it. If not, there is no
// need to find out whether the node is done.
func IsAwaited(ctx context.Context) bool { return contextOf(ctx).list != nil }
