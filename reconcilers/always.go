package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Always runs its nodes one after the other, also after one of them has failed.
//
//   - Runs: every node, in order.
//   - Stops: never.
//   - On error: runs the other nodes too. It returns the aggregated results of all nodes and their errors, joined if
//     there are several. If only some of the errors are quiet, these are dropped, because a quiet error would silence
//     the others. If a dropped error carried [ErrSkipStatusUpdate], that marker is kept.
//   - On deletion: runs the nodes in the same order.
//
// The results are aggregated, see [AggregateResults]. An empty Always does nothing. An Always inside an Always behaves
// as if its nodes stood in the outer one. A nil node counts as a node that fails. After a panic no other node runs.
type Always[Type client.Object] []SubReconciler[Type]

var _ SubReconciler[client.Object] = Always[client.Object]{}

// SetupWithManager sets up the nodes in order, and stops at the first error, because a tree without its full set-up
// must not start.
func (a Always[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	return setUpList(ctx, mgr, bldr, "Always", "Always", a)
}

// Validate checks that no node is nil and, if recursive, every node.
func (a Always[Type]) Validate(ctx context.Context) error {
	return validateList(ctx, "Always", "Always", a)
}

// Reconcile runs the nodes, see [Always].
func (a Always[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	aggregate := Result{}
	var errs []error
	parent := pathOf(ctx)
	// One allocation for the contexts of all elements.
	paths := make([]nodePath, len(a))
	for i, node := range a {
		paths[i] = nodePath{Context: ctx, name: strconv.Itoa(i), parent: parent, place: placeIndex}
		var result Result
		var err error
		if gotype.IsNil(node) {
			err = nilElement("Always", "Always", i)
		} else {
			result, err = ReconcileNested(&paths[i], node, resource)
		}
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			recordUnlocated(&paths[i], err)
			errs = append(errs, err)
		}
	}
	return aggregate, joinAll(errs...)
}

// Describe lists the nodes.
func (a Always[Type]) Describe() Description {
	return Description{Kind: "Always", Nodes: describeList(a)}
}

// joinAll joins the errors of several nodes. If only some of them are quiet, these are dropped. ErrSkipStatusUpdate
// takes the place of each dropped error that carried it. A single error is returned unchanged, unless a halt beside it
// was dropped, see [haltedError]. Nil errors are skipped.
func joinAll(errs ...error) error {
	someLoud := slices.ContainsFunc(errs, func(err error) bool { return err != nil && !isQuiet(err) })
	var kept []error
	halted := false
	for _, err := range errs {
		if err == nil {
			continue
		}
		quiet := someLoud && isQuiet(err)
		halted = halted || quiet && haltsAll(err)
		switch {
		case !quiet:
			kept = append(kept, err)
		case errors.Is(err, ErrSkipStatusUpdate):
			kept = append(kept, ErrSkipStatusUpdate)
		}
	}
	joined := errors.Join(kept...)
	if len(kept) == 1 {
		joined = kept[0]
	}
	if halted {
		return &haltedError{joined}
	}
	return joined
}

// haltedError is a loud error of a node in which another node halted. A [List] around it is halted too, although the
// error is not quiet as a halt is.
type haltedError struct{ error }

func (e *haltedError) Unwrap() error { return e.error }
