package simulation

import "context"

// External is something outside of the cluster that an operator deals with, such as a directory or a DNS. Each world
// has its own, which is a zero T at first, and outlives the processes of the operator. Several worlds exist at the same
// time, so neither an operator nor a story may close over such a thing: they ask for it by In and Of.
//
// Calls of it have faults, as requests have, if they are made with Call of package rtesting (the module's package
// testing) and the context of a reconciler.
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

// In returns the thing of the world in which an operator runs. It is for [Options.Operator] and for what the operator
// does later, in any goroutine of it. It panics outside of a simulation, where there is no thing.
func (e *External[T]) In(context.Context) *T {
	w := bubbles.current()
	if w == nil {
		panic("simulation: External.In is called outside of a simulation: call it in Options.Operator, or in code " +
			"that a simulation runs")
	}
	return e.Of(w)
}
