package reconcilers

import (
	"errors"
	"fmt"
	"slices"
)

// The errors with a special meaning. They are matched with errors.Is, so they may be wrapped and joined.
var (
	// ErrQuiet marks an error as expected. It stops the tree like any other error, but it is neither logged nor
	// recorded as an event. The root turns it into a requeue.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers keeps the nodes after the one that returns it from running, although nothing failed. The
	// generation counts as observed and the status is written. It is quiet.
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrDurable marks an error that a retry will not fix. It is quiet and halts. The root does not retry because of
	// it. It runs again when something changes, or after a delay that a node asked for. When joined with other errors,
	// ErrDurable makes plain errors durable too. A joined error that is itself quiet or a halt, but not durable, still
	// asks for a retry.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// ErrSkipStatusUpdate keeps the root from writing the status in this request. It is not quiet. Join it with
	// ErrQuiet for a quiet error.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// OnlyReconcileChildStatus is returned by DesiredChild or DesiredChildren to leave the children as they are. They
	// are reflected on the parent, but not created, updated or deleted.
	//
	//lint:ignore ST1012 the name is part of the compatible vocabulary
	OnlyReconcileChildStatus = errors.New("skip reconciler create/update/delete behavior for the child resource, " +
		"while still reflecting the existing child's status on the reconciled resource")
)

func isQuiet(err error) bool {
	return errors.Is(err, ErrQuiet)
}

func isHalt(err error) bool {
	return errors.Is(err, ErrHaltSubReconcilers)
}

// isOnlyHalt reports whether err is ErrHaltSubReconcilers, wrapped or joined with itself, and nothing else. ErrQuiet,
// ErrDurable, and a halt that is joined with another error are more than that.
func isOnlyHalt(err error) bool {
	if err == ErrHaltSubReconcilers {
		return true
	}
	wrapped := wrappedErrors(err)
	return len(wrapped) > 0 && !slices.ContainsFunc(wrapped, func(err error) bool { return !isOnlyHalt(err) })
}

// isDurable reports whether a retry is of no use: err contains ErrDurable, and no part of it asks for a retry.
// ErrDurable also counts for the plain errors that it is joined with.
func isDurable(err error) bool {
	return errors.Is(err, ErrDurable) && !wantsRetry(err)
}

// wantsRetry reports whether err, or an error in it, is quiet and not durable.
func wantsRetry(err error) bool {
	switch {
	case err == ErrDurable, !isQuiet(err):
		// The errors that ErrDurable joins are quiet, but they do not ask for a retry.
		return false
	case !errors.Is(err, ErrDurable):
		return true
	default:
		return slices.ContainsFunc(wrappedErrors(err), wantsRetry)
	}
}

// hidesFailure reports whether err contains more than ErrQuiet and ErrSkipStatusUpdate, that is, whether something
// failed that a quiet error hides.
func hidesFailure(err error) bool {
	if wrapped := wrappedErrors(err); len(wrapped) > 0 {
		return slices.ContainsFunc(wrapped, hidesFailure)
	}
	return err != ErrQuiet && err != ErrSkipStatusUpdate
}

// wrappedErrors returns the errors that err wraps or joins, or none.
func wrappedErrors(err error) []error {
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		if wrapped := wrapper.Unwrap(); wrapped != nil {
			return []error{wrapped}
		}
	case interface{ Unwrap() []error }:
		return wrapper.Unwrap()
	case interface{ Errors() []error }:
		// The aggregates of the API machinery.
		return wrapper.Errors()
	}
	return nil
}
