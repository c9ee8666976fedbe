package fault

import (
	"context"
	"errors"
)

// Caller makes calls of something outside of the clusters. They have faults.
type Caller interface {
	// Do makes a call of a name. The error is that of do or of a fault.
	Do(ctx context.Context, name string, do func() error) error
}

// ErrFails is in the error of a call outside of the clusters that [Fails].
var ErrFails = errors.New("fails in this replay")

type callerKey struct{}

// WithCaller returns a context whose calls of something outside a caller makes.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallOutside makes a call by the caller of a context. Without one it does nothing but to call do.
func CallOutside(ctx context.Context, name string, do func() error) error {
	if caller, ok := ctx.Value(callerKey{}).(Caller); ok {
		return caller.Do(ctx, name, do)
	}
	return do()
}
