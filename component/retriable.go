package component

import "time"

// RetriableError says that something the component needs is not there yet: nothing failed, and the component is Pending rather
// than in state Error. A [Generator] or a [Hook] returns one; it is found anywhere in the chain of an error:
//
//	var retriable *component.RetriableError
//	if errors.As(err, &retriable) {
//
// Where an error joins several, it is enough that one of them is retriable.
type RetriableError struct {
	err   error
	after time.Duration
}

// NewRetriableError wraps err in a [RetriableError] that asks for another attempt after the given time. nil, 0 and negative times
// leave it to the component, see [RetryConfiguration]. A nil err is returned as nil.
func NewRetriableError(err error, after *time.Duration) error {
	if err == nil {
		return nil
	}
	retriable := &RetriableError{err: err}
	if after != nil && *after > 0 {
		retriable.after = *after
	}
	return retriable
}

// Error returns the text of the error that is wrapped.
func (e *RetriableError) Error() string {
	if e == nil || e.err == nil {
		return "not there yet"
	}
	return e.err.Error()
}

// Unwrap returns the error that is wrapped.
func (e *RetriableError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.err
}

// RetryAfter returns after which time, greater than 0, to try again; nil if that is left to the component.
func (e *RetriableError) RetryAfter() *time.Duration {
	if e == nil || e.after <= 0 {
		return nil
	}
	after := e.after
	return &after
}
