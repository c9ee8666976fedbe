package reconcilers

import (
	"context"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Sequence runs its nodes one after the other.
//
//   - Runs: every node, in order.
//   - Stops: at the first node that returns an error.
//   - On error: returns the error and the result of that node. The results of earlier nodes are dropped, because the
//     error causes a retry anyway.
//   - On deletion: runs the nodes in the same order. Use [ReverseOnDeletion] for the reverse order, in which each node
//     waits for those after it.
//
// Without an error the results are aggregated, see [AggregateResults]. An empty Sequence does nothing. A Sequence
// inside a Sequence behaves as if its nodes stood in the outer one.
type Sequence[Type client.Object] []SubReconciler[Type]

var _ SubReconciler[client.Object] = Sequence[client.Object]{}

// SetupWithManager sets up the nodes in order, and stops at the first error.
func (s Sequence[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUpList(ctx, mgr, bldr, "Sequence", "Sequence", s)
}

// Validate checks that no node is nil and, if recursive, every node.
func (s Sequence[Type]) Validate(ctx context.Context) error {
	return validateList(ctx, "Sequence", "Sequence", s)
}

// Reconcile runs the nodes, see [Sequence].
func (s Sequence[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	aggregate := Result{}
	parent := pathOf(ctx)
	// One allocation for the contexts of all elements.
	paths := make([]nodePath, len(s))
	for i, node := range s {
		if gotype.IsNil(node) {
			return Result{}, nilElement("Sequence", "Sequence", i)
		}
		paths[i] = nodePath{Context: ctx, name: strconv.Itoa(i), parent: parent, place: placeIndex}
		result, err := ReconcileNested(&paths[i], node, resource)
		if err != nil {
			return result, err
		}
		aggregate = aggregateResult(aggregate, result)
	}
	return aggregate, nil
}

// Describe lists the nodes.
func (s Sequence[Type]) Describe() Description {
	return Description{Kind: "Sequence", Nodes: describeList(s)}
}

// The functions below are shared by the lists of nodes. In their errors, field has the nodes. For a slice that is its
// type.

func setUpList[Type client.Object](
	ctx context.Context, mgr Manager, bldr *Builder, kind, field string, nodes []SubReconciler[Type],
) error {
	for i, node := range nodes {
		if gotype.IsNil(node) {
			return nilElement(kind, field, i)
		}
		if err := node.SetupWithManager(Enter(ctx, strconv.Itoa(i)), mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

func validateList[Type client.Object](ctx context.Context, kind, field string, nodes []SubReconciler[Type]) error {
	for i, node := range nodes {
		if gotype.IsNil(node) {
			return nilElement(kind, field, i)
		}
		if err := validateNested(ctx, node); err != nil {
			return fmt.Errorf("%s must have a valid %s[%d]: %w", kind, field, i, err)
		}
	}
	return nil
}

func nilElement(kind, field string, index int) error {
	return fmt.Errorf("%s must have a valid %s[%d]: %w", kind, field, index, errNilNode)
}

func describeList[Type client.Object](nodes []SubReconciler[Type]) []Description {
	descriptions := make([]Description, len(nodes))
	for i, node := range nodes {
		descriptions[i] = Describe(node)
		descriptions[i].Index = strconv.Itoa(i)
	}
	return descriptions
}
