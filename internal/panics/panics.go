// Package panics makes errors of panics.
package panics

import (
	"context"
	"fmt"
	"reflect"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Error is the error of a function that panicked. It unwraps to nothing: an error that a function panics with says
// nothing about a retry.
type Error struct {
	value string
}

func (e *Error) Error() string { return "panicked: " + e.value }

type observerKey struct{}

// WithObserver returns a context with a function that is told of each panic in what gets the context. The deferred
// function calls it that has recovered from the panic.
func WithObserver(ctx context.Context, observe func(value any)) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Recovered returns the error for a value that was recovered. It calls the handlers of the API machinery, one of which
// logs the panic with its stack. So it has to be called by the deferred function that has recovered the value.
func Recovered(ctx context.Context, value any) *Error {
	for _, handle := range utilruntime.PanicHandlers {
		handle(ctx, value)
	}
	if observe, ok := ctx.Value(observerKey{}).(func(value any)); ok {
		observe(value)
	}
	return &Error{textOf(value)}
}

// textOf returns the text of a value that is the same each time. That of a pointer may have addresses.
func textOf(value any) string {
	switch value.(type) {
	case error, fmt.Stringer:
		return fmt.Sprint(value)
	}
	kind := reflect.ValueOf(value).Kind()
	if kind == reflect.String || reflect.Bool <= kind && kind <= reflect.Complex128 {
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("a value of type %T", value)
}
