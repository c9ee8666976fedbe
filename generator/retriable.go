package generator

import "time"

// RetriableError says that something that the component needs does not exist yet. It is no failure: the component is
// Pending and not in state Error. A [Generator] or a [Hook] returns one, which may be wrapped:
//
//	var retriable *generator.RetriableError
//	if errors.As(err, &retriable) {
//
// An error that joins several is retriable if one of them is.
type RetriableError struct {
	err   error
	after time.Duration
}

// NewRetriableError wraps err in a [RetriableError] that asks for another attempt after the given time. If the time is
// nil, 0 or negative, the component decides, see [RetryConfiguration]. A nil err is returned as nil.
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

// Error returns the text of the wrapped error.
func (e *RetriableError) Error() string {
	if e == nil || e.err == nil {
		return "not there yet"
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e *RetriableError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.err
}

// RetryAfter returns the time, greater than 0, after which to try again, or nil if the component decides.
func (e *RetriableError) RetryAfter() *time.Duration {
	if e == nil || e.after <= 0 {
		return nil
	}
	after := e.after
	return &after
}
