package reconcilers

import (
	"errors"
	"fmt"
	"slices"
)

// The errors with a meaning of their own. They are matched with errors.Is, so they may be wrapped and joined.
var (
	// ErrQuiet marks an error as expected: it stops the tree like any other, but is neither logged nor recorded as an
	// event. The root turns it into a requeue.
	ErrQuiet = errors.New("quiet errors are returned as errors, but not logged or recorded")

	// ErrHaltSubReconcilers stops the nodes that would run after the one that returns it, without anything having
	// failed: the generation counts as observed and the status is written. It is quiet.
	ErrHaltSubReconcilers = fmt.Errorf("stop processing SubReconcilers, without returning an error: %w", ErrQuiet)

	// ErrDurable marks an error that another attempt will not mend. It is quiet and halts. The root does not come back
	// because of it: only when something changes, or after a delay that a node asked for. In a join it speaks for the
	// members that say nothing of themselves, not for one that is quiet, or halts, without being durable: that one
	// wants another attempt.
	ErrDurable = errors.Join(ErrQuiet, ErrHaltSubReconcilers)

	// ErrSkipStatusUpdate keeps the root from writing the status in this request. It is not quiet: join it with
	// ErrQuiet where that is wanted.
	ErrSkipStatusUpdate = errors.New("skip ResourceReconciler status update for this request")

	// OnlyReconcileChildStatus is returned by the function that says what child is desired, when the child is to be
	// left as it is: it is reflected on the parent, but not created, updated or deleted.
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

// isOnlyHalt tells whether err stops the tree and says nothing else: neither that another attempt will not mend it, nor
// that one is wanted, nor what failed, as a halt that is joined with another error does.
func isOnlyHalt(err error) bool {
	if err == ErrHaltSubReconcilers {
		return true
	}
	members := membersOf(err)
	return len(members) > 0 && !slices.ContainsFunc(members, func(err error) bool { return !isOnlyHalt(err) })
}

// isDurable tells whether another attempt at what failed is of no use: err is marked so, and nothing in it wants one.
// Errors without a mark are spoken for by the [ErrDurable] that they are joined with.
func isDurable(err error) bool {
	return errors.Is(err, ErrDurable) && !wantsRetry(err)
}

// wantsRetry tells whether err, or a member of it, is quiet and is not durable.
func wantsRetry(err error) bool {
	switch {
	case err == ErrDurable, !isQuiet(err):
		// The members of ErrDurable itself are quiet, and mean no more than it does.
		return false
	case !errors.Is(err, ErrDurable):
		return true
	default:
		return slices.ContainsFunc(membersOf(err), wantsRetry)
	}
}

// hidesFailure tells whether something failed that a mark of being quiet keeps silent, rather than there being marks
// only.
func hidesFailure(err error) bool {
	if members := membersOf(err); len(members) > 0 {
		return slices.ContainsFunc(members, hidesFailure)
	}
	return err != ErrQuiet && err != ErrSkipStatusUpdate
}

// membersOf returns the errors that err wraps or joins, none if it stands for itself.
func membersOf(err error) []error {
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
