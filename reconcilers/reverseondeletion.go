package reconcilers

import (
	"context"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// ReverseOnDeletion is a [Sequence] whose nodes clean up one after the other, the last one first. Use it if a node must
// not clean up while another one still needs what it made, or cannot be deleted yet: the node that decides whether the
// deletion may begin, such as a ComponentReconciler, is the last.
//
//   - Runs: every node, in order, as a Sequence does.
//   - Stops: at the first node that returns an error. On deletion, also at the first node that has not finished.
//   - On error: returns the error and the result of that node.
//   - On deletion: runs the nodes in reverse order. A node runs only if those after it have finished. A node has not
//     finished if it returns an error, if its result asks for a requeue or a delay, or while the resource has a
//     finalizer of the node or of a node inside it. A [Supervisor] that says [Withdraw] has the same effect.
//
// The finalizers of a node are those of its [Description]. A node that cleans up without a finalizer, and that has to
// wait, must ask for a delay. Nodes outside of the list do not wait.
//
// Without an error the results are aggregated, see [AggregateResults].
type ReverseOnDeletion[Type client.Object] []SubReconciler[Type]

var _ SubReconciler[client.Object] = ReverseOnDeletion[client.Object]{}

// SetupWithManager sets up the nodes in order, and stops at the first error.
func (s ReverseOnDeletion[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUpList(ctx, mgr, bldr, "ReverseOnDeletion", "ReverseOnDeletion", s)
}

// Validate checks that no node is nil and, if recursive, every node.
func (s ReverseOnDeletion[Type]) Validate(ctx context.Context) error {
	if i := slices.IndexFunc(s, func(node SubReconciler[Type]) bool { return gotype.IsNil(node) }); i >= 0 {
		return nilElement("ReverseOnDeletion", "ReverseOnDeletion", i)
	}
	return validateList(ctx, "ReverseOnDeletion", "ReverseOnDeletion", s)
}

// Reconcile runs the nodes, see [ReverseOnDeletion].
func (s ReverseOnDeletion[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	if i := slices.IndexFunc(s, func(node SubReconciler[Type]) bool { return gotype.IsNil(node) }); i >= 0 {
		return Result{}, nilElement("ReverseOnDeletion", "ReverseOnDeletion", i)
	}
	if !CleansUp(ctx, resource) {
		return Sequence[Type](s).Reconcile(ctx, resource)
	}
	aggregate := Result{}
	for i, node := range slices.Backward(s) {
		result, err := ReconcileNested(enterPlace(ctx, strconv.Itoa(i), placeIndex), node, resource)
		if err != nil {
			return result, err
		}
		aggregate = aggregateResult(aggregate, result)
		if comesBack(result) || hasOneOf(resource, Describe(node).allFinalizers()) {
			break
		}
	}
	return aggregate, nil
}

// Describe lists the nodes.
func (s ReverseOnDeletion[Type]) Describe() Description {
	return Description{Kind: "ReverseOnDeletion", Nodes: describeList(s)}
}

// comesBack reports whether a result asks for another request.
func comesBack(result Result) bool {
	//lint:ignore SA1019 users still set it
	return result.Requeue || result.RequeueAfter > 0
}

// allFinalizers returns the finalizers of the node and of the nodes inside it.
func (d Description) allFinalizers() []string {
	var finalizers []string
	d.Walk(func(_ string, d Description) { finalizers = append(finalizers, d.Finalizers...) })
	return finalizers
}

// hasOneOf reports whether the resource has one of the finalizers.
func hasOneOf(resource client.Object, finalizers []string) bool {
	return slices.ContainsFunc(finalizers, func(finalizer string) bool {
		return controllerutil.ContainsFinalizer(resource, finalizer)
	})
}
