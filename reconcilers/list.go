package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/graph"
)

// List runs its nodes in order, as far as each has what it needs, see [Order]. A node that declares nothing needs every
// node before it.
//
//   - Runs: the nodes, in order. A node that declares what it needs runs also after others have failed. It waits by
//     itself, see [Unmet].
//   - Stops: at an error of a node that others cannot do without: one that has a finalizer, one that knows nothing of
//     order, such as a literal of this package, or a node around one of these. Also at a halt of any node.
//   - On error: the nodes that declare nothing do not run. If others run, it returns the aggregated results and the
//     errors, joined as those of [Always]. Otherwise it returns the error and the result of the node.
//   - On deletion: if a node declares what it needs, or needs something of a node in another branch of the list, the
//     nodes run in reverse order. A node runs if those after it that need it have finished, as in [ReverseOnDeletion],
//     and have not called [NotDone]. Nodes that are independent of an unfinished one run too. A [Supervisor] that says
//     [Withdraw] has the same effect.
//
// Without an error the results are aggregated, see [AggregateResults]. An empty List does nothing. If nothing in it
// declares what it needs, a List is a [Sequence], also on deletion, and is described as one.
//
// The set-up of the root refuses a list in which a node can never have what it needs.
type List[Type client.Object] struct {
	// Nodes are the nodes. Default: none.
	Nodes []SubReconciler[Type]

	plan     graph.Plan
	planOnce sync.Once
	// finalizers are those of each node and of the nodes nested in it.
	finalizers [][]string
}

var _ SubReconciler[client.Object] = (*List[client.Object])(nil)

// SetupWithManager sets up the nodes in order, and stops at the first error.
func (l *List[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUpList(ctx, mgr, bldr, "List", "Nodes", l.Nodes)
}

// Validate checks that no node is nil and, if recursive, every node.
func (l *List[Type]) Validate(ctx context.Context) error {
	return validateList(ctx, "List", "Nodes", l.Nodes)
}

// prepare makes the plan at the first request.
func (l *List[Type]) prepare() {
	l.planOnce.Do(func() {
		description := l.Describe()
		list := graphOf(description, "")
		l.plan = graph.PlanOf(&list)
		for _, node := range description.Nodes {
			l.finalizers = append(l.finalizers, node.allFinalizers())
		}
	})
}

// Reconcile runs the nodes, see [List].
func (l *List[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	l.prepare()
	var run *listRun
	cleansUp := l.plan.Declares && CleansUp(ctx, resource)
	if l.plan.Named || cleansUp {
		ctx, run = withListRun(ctx, &l.plan)
	}
	// One allocation for the contexts of all elements.
	all := listPass[Type]{List: l, resource: resource, run: run, paths: make([]nodePath, len(l.Nodes))}
	parent := pathOf(ctx)
	for i := range all.paths {
		all.paths[i] = nodePath{Context: ctx, name: strconv.Itoa(i), parent: parent, place: placeIndex}
	}
	if cleansUp {
		return all.backwards()
	}
	return all.forwards()
}

// listPass is one way through the nodes of a list.
type listPass[Type client.Object] struct {
	*List[Type]
	resource Type
	run      *listRun
	paths    []nodePath

	result Result
	errs   []error
}

func (p *listPass[Type]) forwards() (Result, error) {
	for i := range p.Nodes {
		if len(p.errs) > 0 && !p.plan.Declared[i] {
			continue
		}
		result, err := p.reconcile(i)
		if err == nil {
			p.result = aggregateResult(p.result, result)
			continue
		}
		if stops := haltsAll(err) || p.plan.Barrier[i]; stops || !slices.Contains(p.plan.Declared[i+1:], true) {
			return p.ended(result, err)
		}
		p.result = aggregateResult(p.result, result)
		p.errs = append(p.errs, err)
	}
	return p.result, joinAll(p.errs...)
}

// haltsAll reports whether an error says that no other node is to run. One that no retry mends is only the node's own.
func haltsAll(err error) bool {
	_, halted := errors.AsType[*haltedError](err)
	return halted || isHalt(err) && !isDurable(err)
}

// ended returns the outcome if nothing runs after a node that failed. If it is the only one, the outcome is that of the
// node, as that of a Sequence is.
func (p *listPass[Type]) ended(result Result, err error) (Result, error) {
	if len(p.errs) == 0 {
		return result, err
	}
	return aggregateResult(p.result, result), joinAll(append(p.errs, err)...)
}

func (p *listPass[Type]) backwards() (Result, error) {
	if i := slices.IndexFunc(p.Nodes, func(node SubReconciler[Type]) bool { return gotype.IsNil(node) }); i >= 0 {
		return Result{}, nilElement("List", "Nodes", i)
	}
	cleanup := graph.Cleanup{Plan: &p.plan}
	for i := range slices.Backward(p.Nodes) {
		if cleanup.Waits(i) {
			cleanup.Unfinished(i)
			continue
		}
		result, err := p.reconcile(i)
		if haltsAll(err) {
			return p.ended(result, err)
		}
		p.result = aggregateResult(p.result, result)
		if err != nil {
			p.errs = append(p.errs, err)
		}
		if !p.run.done[i] || comesBack(result) || hasOneOf(p.resource, p.finalizers[i]) {
			cleanup.Unfinished(i)
		}
	}
	return p.result, joinAll(p.errs...)
}

// reconcile runs one node.
func (p *listPass[Type]) reconcile(i int) (Result, error) {
	if gotype.IsNil(p.Nodes[i]) {
		return Result{}, nilElement("List", "Nodes", i)
	}
	p.run.start()
	result, err := ReconcileNested(&p.paths[i], p.Nodes[i], p.resource)
	p.run.end(i, err)
	return result, err
}

// Describe lists the nodes. It describes a Sequence if nothing in the list declares what it needs.
func (l *List[Type]) Describe() Description {
	d := Description{Kind: "Sequence", Order: &Order{}, Nodes: describeList(l.Nodes), list: true}
	list := graphOf(d, "")
	if graph.PlanOf(&list).Declares {
		d.Kind = "List"
	}
	return d
}
