package simulation

import "context"

// External is something outside of the cluster that an operator deals with, such as a directory or a DNS. Each world
// has its own, which is a zero T at first, and outlives the processes of the operator. Several worlds exist at the same
// time, so neither an operator nor a story may close over such a thing: they ask for it by In and Of.
//
// It is declared as a variable. Two variables are two things.
type External[T any] struct {
	// A variable without size may have the address of another one.
	_ byte
}

// Of returns the thing of a world.
func (e *External[T]) Of(w *World) *T {
	thing, _ := w.externals.LoadOrStore(e, new(T))
	return thing.(*T)
}

// In returns the thing of the world in which an operator is set up. The context is that which [Options.Operator] gets.
func (e *External[T]) In(ctx context.Context) *T { return e.Of(ctx.Value(worldKey{}).(*World)) }

// worldKey is what contexts have a world under.
type worldKey struct{}
