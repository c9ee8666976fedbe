package reconcilers

import (
	"context"
	"errors"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Always runs its nodes one after the other, whatever becomes of those before.
//
//   - Runs: every node, in order.
//   - Stops: never.
//   - On error: runs the other nodes all the same, and returns the errors, joined if there are several, with the
//     aggregated results of all nodes. A quiet error counts only if all errors are quiet: it would silence the others.
//     Of one that is left out, the wish that the status is not written stays.
//   - On deletion: runs the nodes in the same order.
//
// The results are aggregated, see [AggregateResults]. An empty Always does nothing. Always nests without changing what
// runs and what is returned: it does not matter how a long one is split. A node that is missing is an error of its own,
// which does not keep the others from running. A panic does.
type Always[Type client.Object] []SubReconciler[Type]

var _ SubReconciler[client.Object] = Always[client.Object]{}

// SetupWithManager sets up the nodes in order, and stops at the first error: a tree that is set up in part does not
// start.
func (a Always[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	for i, node := range a {
		if isNilNode(node) {
			return nilElement("Always", i)
		}
		if err := node.SetupWithManager(Enter(ctx, strconv.Itoa(i)), mgr, bldr); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks that no node is nil and, if recursive, every node.
func (a Always[Type]) Validate(ctx context.Context) error {
	return validateList(ctx, "Always", a)
}

// Reconcile runs the nodes, see [Always].
func (a Always[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	aggregate := Result{}
	var errs []error
	parent := pathOf(ctx)
	// One allocation for the contexts of all elements.
	paths := make([]nodePath, len(a))
	for i, node := range a {
		paths[i] = nodePath{Context: ctx, name: strconv.Itoa(i), parent: parent}
		var result Result
		var err error
		if isNilNode(node) {
			err = nilElement("Always", i)
		} else {
			result, err = node.Reconcile(&paths[i], resource)
		}
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			recordUnlocated(&paths[i], err)
			errs = append(errs, err)
		}
	}
	return aggregate, joinAll(errs)
}

// Describe lists the nodes.
func (a Always[Type]) Describe() Description {
	return Description{Kind: "Always", Nodes: describeList(a)}
}

// joinAll makes one error of those of several nodes. Beside one that is not quiet, of a quiet one only the mark that
// may stand beside any error is kept, in its place.
func joinAll(errs []error) error {
	quiet := 0
	for _, err := range errs {
		if isQuiet(err) {
			quiet++
		}
	}
	if quiet > 0 && quiet < len(errs) {
		var loud []error
		for _, err := range errs {
			switch {
			case !isQuiet(err):
				loud = append(loud, err)
			case errors.Is(err, ErrSkipStatusUpdate):
				loud = append(loud, ErrSkipStatusUpdate)
			}
		}
		errs = loud
	}
	// A single error stays as it is.
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
