// Package reconcilers is a small vocabulary with a node of each group, and with what is no node.
package reconcilers

import (
	"context"

	"example.test/admission"
	"example.test/parts"
)

// Resource is what is reconciled.
type Resource interface{ Do() }

// Request names a resource.
type Request struct{ Name string }

// SubReconciler is a node. It is an interface, so it has no page.
type SubReconciler[Type Resource] interface {
	Reconcile(ctx context.Context, resource Type) error
}

// Manager is the interface of strategies.
type Manager interface {
	Manage(ctx context.Context, resource Resource) error
}

// Config has no method that would make it a node.
type Config struct{ Undocumented string }

// Reconcile without a resource makes no node either.
func (Config) Reconcile(context.Context) error { return nil }

// Events handles something, but no requests.
type Events struct{}

// Handle hears an event.
func (Events) Handle(context.Context, string) {}

// Func is neither a struct nor a slice.
type Func func()

// Reconcile calls it.
func (Func) Reconcile(context.Context, Resource) error { return nil }

// Alias is another name of [Steps], not another node.
type Alias[Type Resource] = Steps[Type]

type hidden struct{}

func (hidden) Reconcile(context.Context, Resource) error { return nil }

// Entry is the root. It runs [Entry.Reconciler] for each [Request], as package [parts] says.
type Entry[Type Resource] struct {
	// Reconciler is the tree, a [Steps] most likely. Required.
	Reconciler SubReconciler[Type]

	once int
}

// Reconcile runs the tree.
func (e *Entry[T]) Reconcile(_ context.Context, _ Request) error { return nil }

// Webhook is a root too: it answers requests of admission.
type Webhook struct {
	// North, South are where it answers.
	North, South string // not this
	East         string // East is documented beside it.
	// Parts is embedded. See [parts.Parts] and [example.test/pieces.Pieces].
	parts.Parts
}

// Handle answers.
func (w Webhook) Handle(ctx context.Context, request admission.Request) error { return nil }

// Steps runs its nodes one after the other. The second sentence is not in the index.
//
//   - Runs: every node, in order. This is long enough that it has to be broken in other places than where the comment was
//     broken.
//   - Stops: never.
//
// # A heading
//
// Steps with air between them:
//
//  1. The *first* step of a_name and of []SubReconciler.
//
//  2. The second.
//
//     With a paragraph.
//
// This is Go:
//
//	Steps[Type]{
//		first,
//
//		second,
//	}
//
// and this is not:
//
//	Steps
//	└─ Task
//
// See [Task], [Steps.Reconcile], [NoSuchThing] and [Config].
type Steps[Type Resource] []SubReconciler[Type]

// Reconcile runs the nodes.
func (s Steps[Type]) Reconcile(ctx context.Context, resource Type) error { return nil }

// A Switch has its nodes in a map.
type Switch[Type, Other Resource, N ~int | ~string] struct {
	// Nodes are chosen from.
	//
	// By name:
	//
	//	Nodes: map[string][]SubReconciler[Other]{"first": nil}
	//
	// There may be:
	//
	//   - one
	//   - another, with so many words about it that the line of this list, in a list, does not have room for all of them
	Nodes map[string][]SubReconciler[Other]

	// Ready says whether the branch can be made, given everything that may have to be known about it.
	Ready func(
		ctx context.Context,
		resource Type,
	) (bool, error)
}

// Reconcile runs one.
func (*Switch[Type, Other, N]) Reconcile(ctx context.Context, resource Type) error { return nil }

// Task is a leaf, and not a [parts.Task].
type Task struct{}

// Reconcile does it.
func (Task) Reconcile(ctx, resource any) error { return nil }

// Writer is the strategy that writes one [Task].
type Writer[Type Resource] struct {
	// Tasks has a node in a parameter, which is not one of its own.
	Tasks func(SubReconciler[Type])
}

// Manage writes it.
func (*Writer[Type]) Manage(context.Context, Resource) error { return nil }
