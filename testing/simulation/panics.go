package simulation

import (
	"context"
	"runtime/debug"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Libraries that recover a panic call these handlers, with the context of what panicked, while its stack is there.
// They are added before anything runs: nobody may change them later.
func init() {
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(ctx context.Context, reason any) {
		if handle, ok := ctx.Value(panicsKey{}).(func(reason any)); ok {
			handle(reason)
		}
	})
}

// panicsKey is what contexts have a function under that takes panics.
type panicsKey struct{}

// withPanics returns a context for a process. Its panics are handled until it is dead.
func withPanics(ctx context.Context, died <-chan struct{}, handle func(reason any, stack string)) context.Context {
	return context.WithValue(ctx, panicsKey{}, func(reason any) {
		select {
		case <-died:
		default:
			handle(reason, panicStack())
		}
	})
}

// withPanicsOf returns a context of a request whose panics are those of a process.
func withPanicsOf(ctx, process context.Context) context.Context {
	return context.WithValue(ctx, panicsKey{}, process.Value(panicsKey{}))
}

// panicsIn returns what gives a manager the context of its runnables: one of base with the panics of a process. Nil is
// the background.
func panicsIn(process context.Context, base manager.BaseContextFunc) manager.BaseContextFunc {
	if base == nil {
		base = context.Background
	}
	return func() context.Context { return withPanicsOf(base(), process) }
}

// panicStack returns the stack of a deferred function that handles a panic, without what handles it.
func panicStack() string {
	stack := string(debug.Stack())
	if i := strings.Index(stack, "\npanic("); i >= 0 {
		return stack[i+1:]
	}
	return stack
}
