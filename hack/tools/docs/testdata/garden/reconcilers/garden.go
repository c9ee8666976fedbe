// Package reconcilers is a small vocabulary with a node of each group, and with what is no node.
package reconcilers

import (
	"context"

	"example.test/admission"
	"example.test/soil"
)

// Resource is what is reconciled.
type Resource interface{ Grow() }

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

// Alias is another name of [Row], not another node.
type Alias[Type Resource] = Row[Type]

type hidden struct{}

func (hidden) Reconcile(context.Context, Resource) error { return nil }

// Garden is the root. It runs [Garden.Reconciler] for each [Request], as package [soil] says.
type Garden[Type Resource] struct {
	// Reconciler is the tree, a [Row] most likely. Required.
	Reconciler SubReconciler[Type]

	once int
}

// Reconcile runs the tree.
func (g *Garden[T]) Reconcile(_ context.Context, _ Request) error { return nil }

// Gate is a root too: it answers requests of admission.
type Gate struct {
	// North, South are where it leads to.
	North, South string // not this
	East         string // East is documented beside it.
	// Soil is embedded. See [soil.Soil] and [example.test/loam.Loam].
	soil.Soil
}

// Handle lets in.
func (g Gate) Handle(ctx context.Context, request admission.Request) error { return nil }

// Row runs its nodes one after the other. The second sentence is not in the index.
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
//	Row[Type]{
//		first,
//
//		second,
//	}
//
// and this is not:
//
//	Row
//	└─ Plant
//
// See [Plant], [Row.Reconcile], [NoSuchThing] and [Config].
type Row[Type Resource] []SubReconciler[Type]

// Reconcile runs the nodes.
func (r Row[Type]) Reconcile(ctx context.Context, resource Type) error { return nil }

// A Choice has its nodes in a map.
type Choice[Type, Other Resource, N ~int | ~string] struct {
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

	// Ready says whether the choice can be made, given everything that may have to be known about it.
	Ready func(
		ctx context.Context,
		resource Type,
	) (bool, error)
}

// Reconcile runs one.
func (*Choice[Type, Other, N]) Reconcile(ctx context.Context, resource Type) error { return nil }

// Plant is a leaf, and not a [soil.Plant].
type Plant struct{}

// Reconcile waters it.
func (Plant) Reconcile(ctx, resource any) error { return nil }

// Gardener is the strategy that looks after one [Plant].
type Gardener[Type Resource] struct {
	// Plants has a node in a parameter, which is not one of its own.
	Plants func(SubReconciler[Type])
}

// Manage looks after it.
func (*Gardener[Type]) Manage(context.Context, Resource) error { return nil }
