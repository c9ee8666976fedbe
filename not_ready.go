package espalier

import (
	"errors"
	"fmt"
	"time"
)

// NotReadyError says that something is missing that no retry provides, see [NotReady].
type NotReadyError struct {
	// Reason is the reason of the condition, in CamelCase.
	Reason string
	// Message is the message of the condition.
	Message string
	// Delay is how long to wait until the resource is reconciled again without an event. Zero: no delay, an event has
	// to wake it.
	Delay time.Duration
}

// NotReady returns an error for the functions of this package. It says that the node cannot do its work now, because of
// something that a retry does not change: a name that is taken, a value that is not there yet. The condition that the
// node reports is False with the reason and the message, which is formatted by fmt.Sprintf. Of a text that is another
// one each time, the first three changes are shown at once, and later ones once in a minute at most. Nothing is
// written, nothing is deleted, no error is logged, and the nodes after it run. Guard them with [WhenTrue] if they must
// not.
//
// The resource is reconciled again when something changes that it watches. [NotReadyAfter] adds a delay. The error is a
// [*NotReadyError].
func NotReady(reason, format string, args ...any) error {
	return NotReadyAfter(0, reason, format, args...)
}

// NotReadyAfter is [NotReady] for what sends no event, such as a service outside the cluster: the resource is
// reconciled again after the delay. If the delay is zero, only an event has it reconciled again.
func NotReadyAfter(delay time.Duration, reason, format string, args ...any) error {
	return &NotReadyError{Reason: reason, Message: fmt.Sprintf(format, args...), Delay: delay}
}

func (e *NotReadyError) Error() string {
	return e.Reason + ": " + e.Message
}

// asNotReady returns the NotReadyError in err, or nil.
func asNotReady(err error) *NotReadyError {
	notReady, _ := errors.AsType[*NotReadyError](err)
	return notReady
}

// delayOf returns the delay of the NotReadyError in err, or zero.
func delayOf(err error) time.Duration {
	if notReady := asNotReady(err); notReady != nil {
		return notReady.Delay
	}
	return 0
}
