package reconcilers

import (
	"errors"
	"fmt"
	"slices"
)

// The errors with a meaning of their own. They are matched with errors.Is, so they may be wrapped and joined.
var (
	// ErrQuiet marks an error as expected: it stops the tree like any other, but is neither logged nor recorded as an event.
	// The root turns it into a requeue.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers stops the nodes that would run after the one that returns it, without anything having failed: the
	// generation counts as observed and the status is written. It is quiet.
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrDurable marks an error that another attempt will not mend. It is quiet and halts.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// ErrSkipStatusUpdate keeps the root from writing the status in this request. It is not quiet: join it with ErrQuiet where
	// that is wanted.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// OnlyReconcileChildStatus is returned by the function that says what child is desired, when the child is to be left as it
	// is: it is reflected on the parent, but not created, updated or deleted.
	//
	//lint:ignore ST1012 the name is part of the compatible vocabulary
	OnlyReconcileChildStatus = errors.New("skip reconciler create/update/delete behavior for the child resource, while still reflecting the existing child's status on the reconciled resource")
)

// errPanicked is what a request counts as until the tree has returned.
var errPanicked = errors.New("the tree panicked")

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

func isHalt(err error) bool {
	return errors.Is(err, ErrHaltSubReconcilers)
}

// isOnlyHalt tells whether err stops the tree and says nothing else: neither that another attempt will not mend it, nor
// what failed, as a halt that is joined with another error does.
func isOnlyHalt(err error) bool {
	return isHalt(err) && !errors.Is(err, ErrDurable) && isOnlyMarks(err)
}

func isOnlyMarks(err error) bool {
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return isOnlyMarks(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wrapper.Unwrap(), func(err error) bool { return !isOnlyMarks(err) })
	}
	return err == ErrQuiet
}
