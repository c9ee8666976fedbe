package reconcilers

import (
	"context"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// ChildSetResult is the outcome for the children of a [ChildSetReconciler].
type ChildSetResult[T client.Object] struct {
	// Children has an entry for each desired child, and for each child that was known before the request, sorted by
	// identity. An entry has no Child if the child was deleted in this request, or could not be created. To count
	// children, use Existing.
	Children []ChildSetPartialResult[T]
}

// ChildSetPartialResult is the outcome for one child.
type ChildSetPartialResult[T client.Object] struct {
	// Id is the identity of the child.
	//
	//lint:ignore ST1003 the name is part of the compatible vocabulary
	Id string
	// Child is the child as the API server has it. It is nil if there is none: if the child was deleted in this
	// request, and if Err is set.
	Child T
	// Err is an error to reflect, nil if there was none. Errors that are returned do not appear here.
	Err error
}

// Existing returns the children that exist, as the API server has them, sorted by identity. A child that is being
// deleted is one of them until it is gone. A child with an error is not, because its state is not known.
func (r *ChildSetResult[T]) Existing() []T {
	existing := make([]T, 0, len(r.Children))
	for _, child := range r.Children {
		if !gotype.IsNil(child.Child) {
			existing = append(existing, child.Child)
		}
	}
	return existing
}

// AggregateError returns the errors of all children as one error, or nil if there are none. Its text has equal texts of
// errors once. errors.Is, errors.As, and the functions for the reasons of API errors look into its members.
func (r *ChildSetResult[T]) AggregateError() error {
	var errs []error
	for _, child := range r.Children {
		errs = append(errs, child.Err)
	}
	if aggregate := utilerrors.NewAggregate(errs); aggregate != nil {
		return aggregateError{aggregate}
	}
	return nil
}

// aggregateError lets errors.As see the members of an aggregate.
type aggregateError struct {
	utilerrors.Aggregate
}

func (e aggregateError) Unwrap() []error {
	return e.Errors()
}

type knownChildrenKey struct{}

// stashKnownChildren returns a context in which known are the children of the set that is being reconciled.
func stashKnownChildren[T client.Object](ctx context.Context, known []T) context.Context {
	return context.WithValue(ctx, knownChildrenKey{}, known)
}

// RetrieveKnownChildren returns copies of the children that the [ChildSetReconciler] around the caller found, sorted by
// namespace and name. If the node found none, the slice is empty. The slice is nil outside of such a node, and if the
// children of the node have another type.
func RetrieveKnownChildren[T client.Object](ctx context.Context) []T {
	known, ok := ctx.Value(knownChildrenKey{}).([]T)
	if !ok {
		return nil
	}
	copies := make([]T, len(known))
	for i, child := range known {
		copies[i] = copyOf(child)
	}
	return copies
}
