package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Parallel runs its nodes at the same time. It is for nodes that wait for something slow, such as a service outside or
// the API server of another cluster, and need nothing of each other. Each node is the beginning of a branch.
//
//   - Runs: every node, each with a copy of the resource and of the stash as they were before. Branches begin in order,
//     as many as Limit allows. When all have ended, what they have changed is merged.
//   - Stops: never. A halt in one branch ends only that branch. If the request is cancelled, branches that have not
//     begun do not run; it still waits for those that have.
//   - On error: the other branches are not stopped, and what the branch has changed counts. It returns the aggregated
//     results of all nodes and their errors in the order of the nodes, joined as those of [Always].
//   - On deletion: runs the nodes at the same time. What has to be gone before something else needs a [List] around, or
//     [ReverseOnDeletion].
//
// The outcome does not depend on which branch is faster. It is that of the nodes one after the other, except that no
// branch sees what another one has changed:
//
//   - The resource: every field that one branch has changed has the value of that branch, conditions by their types. A
//     happy condition of a [github.com/espalier-dev/espalier/apis.ConditionSet] is made anew, as if the branches had
//     marked and set their conditions one after the other. If a branch changes the happy condition without a manager of
//     conditions or a function of this package, and another branch marks conditions, both nodes are in an error, as
//     below. What is neither exported nor below an exported field stays as it is.
//   - The stash: a value that one branch has stored or removed. Values themselves must not be changed in branches.
//   - Finalizers: each branch adds and removes its own. The patches are sent one after the other.
//   - Two branches that give a field, or a value in the stash, different values are an error, which names both nodes
//     and the field. The value of the first one counts. A list is one value, so two branches must not append to it,
//     unless it has conditions, records of package apis, or the tag patchMergeKey. So is a struct that has fields that
//     are not exported, or an encoding of its own.
//
// Validate refuses what is known before: two branches that describe one condition, yield one value, or are the same
// node. The set-up of the root also refuses a node that needs a value of another branch, children of one kind that
// cannot be told apart, and one finalizer in two branches.
//
// If two nodes that were not set up together count one object as their child, the one that comes to it last fails, and
// that depends on their speed. The text of the error does not.
//
// Each request copies the resource once for each node before the first one begins, whatever the Limit, and compares
// each copy with the resource at the end, also if no node changes anything.
//
// A panic in a branch is an error of its node, below a root. Otherwise it reaches the caller once all branches have
// ended. Functions of the author are called at the same time, so what they share has to be safe for that. Requests are
// made in the order in which branches come to them. Events are recorded once all branches have ended, in the order of
// the nodes.
//
// Below an [AdmissionWebhookAdapter], branches run one after the other, because they share the response. So they do in
// the tables of package testing, where what they request has the order of the nodes.
//
// An empty Parallel does nothing. A nil node counts as a node that fails.
type Parallel[Type client.Object] struct {
	// Nodes are the nodes. Default: none.
	Nodes []SubReconciler[Type]

	// Limit is how many branches run at the same time, at most. Default (zero): 16. With 1 they run one after
	// the other.
	Limit int
}

// defaultBranches is the Limit of a [Parallel] by default.
const defaultBranches = 16

var _ SubReconciler[client.Object] = (*Parallel[client.Object])(nil)

// SetupWithManager validates, and sets up the nodes in order. It stops at the first error.
func (p *Parallel[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	if err := p.check(); err != nil {
		return err
	}
	return setUpList(ctx, mgr, bldr, "Parallel", "Nodes", p.Nodes)
}

// Validate checks that no node is nil, that no two nodes are known to set the same and, if recursive, every node.
func (p *Parallel[Type]) Validate(ctx context.Context) error {
	if err := validateList(ctx, "Parallel", "Nodes", p.Nodes); err != nil {
		return err
	}
	return p.check()
}

func (p *Parallel[Type]) checkLimit() error {
	if p.Limit < 0 {
		return fmt.Errorf("Parallel must not have the Limit %d: it is a number of nodes, or zero for %d",
			p.Limit, defaultBranches)
	}
	return nil
}

func (p *Parallel[Type]) check() error {
	if err := p.checkLimit(); err != nil {
		return err
	}
	for i, node := range p.Nodes {
		isSame := func(other SubReconciler[Type]) bool { return isSameNode(other, node) }
		if j := slices.IndexFunc(p.Nodes[:i], isSame); j >= 0 {
			return fmt.Errorf("Parallel must not have one node twice, as Nodes[%d] and Nodes[%d]", j, i)
		}
	}
	return checkBranches(describeList(p.Nodes))
}

// isSameNode reports whether two nodes are one value with a state. Pointers to values without a size may be equal by
// chance.
func isSameNode(a, b any) bool {
	t := reflect.TypeOf(a)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Size() > 0 && a == b
}

// checkBranches returns an error if two branches set the same condition or value, as far as their nodes describe it, or
// have a node in common.
func checkBranches(branches []Description) error {
	type setter struct {
		branch int
		path   string
	}
	setters := map[any]setter{}
	for i, branch := range branches {
		places := placesOf(branch)
		for _, p := range places {
			isOfItem := slices.ContainsFunc(p.around, func(around int) bool { return places[around].items })
			for key, what := range p.sets(isOfItem) {
				known, ok := setters[key]
				if ok && known.branch != i {
					return fmt.Errorf("Parallel must not have %s at %s and at %s, which run at the same time",
						what, known.path, p.path)
				}
				if !ok {
					setters[key] = setter{i, p.path}
				}
			}
		}
	}
	return nil
}

// sets returns what the node itself has in common with no other one, by a key that stands for it. What a node yields
// for an item is not in the stash of the request.
func (p place) sets(isOfItem bool) iter.Seq2[any, string] {
	return func(yield func(any, string) bool) {
		for _, condition := range nonEmpty(slices.Clone(p.Conditions)...) {
			if !yield(condition, "the condition "+condition) {
				return
			}
		}
		if p.Order != nil && !isOfItem {
			for _, key := range p.Order.Yields {
				if !yield(key, fmt.Sprintf("the value %q", key)) {
					return
				}
			}
		}
		if p.children != nil {
			yield(p.children.node, "one node")
		}
	}
}

// Reconcile runs the nodes, see [Parallel].
func (p *Parallel[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	switch len(p.Nodes) {
	case 0:
		return Result{}, nil
	case 1:
		// Nothing is changed at the same time, so there is nothing to merge.
		return Always[Type](p.Nodes).reconcile(ctx, "Parallel", "Nodes", resource)
	}
	if err := p.checkLimit(); err != nil {
		return Result{}, Failed(ctx, nil, err)
	}
	original, _ := resourceBehindCast(ctx, resource)
	for _, obj := range []client.Object{resource, original} {
		// Content with Go types that JSON does not know cannot be copied.
		if err := normalize(obj); err != nil {
			return Result{}, Failed(ctx, resource, err)
		}
	}
	run := newParallelRun(ctx, p.Nodes, resource)
	run.all(cmp.Or(p.Limit, defaultBranches))
	return run.merge()
}

// Describe lists the nodes.
func (p *Parallel[Type]) Describe() Description {
	d := Description{Kind: "Parallel", Order: &Order{}, Nodes: describeList(p.Nodes), parallel: true}
	if p.Limit > 0 {
		d.Detail = fmt.Sprintf("%d at a time", p.Limit)
	}
	return d
}
