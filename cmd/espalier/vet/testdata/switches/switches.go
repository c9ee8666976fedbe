// Package switches has fields that are set by hand, and by a switch.
package switches

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type (
	literal = reconcilers.ChildReconciler[*corev1.Pod, *corev1.Secret, client.ObjectList]
	set     = reconcilers.ChildSetReconciler[*corev1.Pod, *corev1.Secret, client.ObjectList]
)

func desired(context.Context, *corev1.Pod) (*corev1.Secret, error) { return nil, nil }

func each(context.Context, *corev1.Pod) ([]*corev1.Secret, error) { return nil, nil }

func options(context.Context, *corev1.Pod) []client.ListOption { return nil }

// Direct: a field that a switch sets, with the switch or without.
var _ = espalier.Owns("Direct", desired).CreateOnly().Tune(func(child *literal) {
	child.LabelChildren = true           // want `Tune must not set LabelChildren: use Labeled`
	child.Finalizer = "example.com/made" // want `Tune must not set Finalizer together with CreateOnly`
})

// A function of the package, through a helper.
var _ = espalier.OwnsEach("Helper", each).Tune(tuned).Unowned()

func tuned(children *set) {
	children.OptionalKind = false
	narrow(children)
}

func narrow(children *set) {
	children.ListOptions = options     // want `Tune must not set ListOptions together with Unowned`
	children.SkipOwnerReference = true // want `Tune must not set SkipOwnerReference: use Unowned`
}

// A method value, and switches that are set later.
type node struct{ renaming reconcilers.Renaming }

func (n *node) tune(child *literal) {
	child.Renaming = n.renaming             // want `Tune must not set Renaming: use nothing: the kind says what a new name means`
	child.Finalizer = "example.com/created" // want `Tune must not set Finalizer together with CreateOnly`
}

func made(n *node) *espalier.Child[*corev1.Pod, *corev1.Secret] {
	child := espalier.Owns("Method", desired)
	child.Tune(n.tune)
	return created(child)
}

func created[T client.Object](child *espalier.Child[T, *corev1.Secret]) *espalier.Child[T, *corev1.Secret] {
	return child.CreateOnly()
}

// A closure that a function returns.
func named(name string) func(*literal) {
	return func(child *literal) {
		child.Name = name // want `Tune must not set Name: use the name of the node`
	}
}

var _ = espalier.Owns("Closure", desired).Tune(named("other"))

// A literal with both, direct and in an embedded alias.
var _ = &literal{
	ChildObjectManager: manager,
	Finalizer:          "example.com/both",                                                    // want `ChildObjectManager and Finalizer must not both be set`
	MergeBeforeUpdate:  func(current, desired *corev1.Secret) { current.Data = desired.Data }, // want `ChildObjectManager and MergeBeforeUpdate must not both be set`
}

var manager = &reconcilers.ApplyingObjectManager[*corev1.Secret]{}

func embedded() any {
	node := &struct{ *set }{&set{ChildObjectManager: manager}}
	both := &set{}
	both.ChildObjectManager = manager
	both.Sanitize = func(*corev1.Secret) any { return nil } // want `ChildObjectManager and Sanitize must not both be set`
	return []any{node, both}
}

// What follows is right.

var _ = []any{
	espalier.Owns("Right", desired).Labeled().Tune(func(child *literal) {
		child.Finalizer = "example.com/right"
		child.ListOptions = options
	}),
	espalier.OwnsEach("Each", each).CreateOnly().Tune(func(children *set) { children.ListOptions = options }),
	&set{ChildObjectManager: manager, Finalizer: "example.com/set", LabelChildren: true},
	&literal{Finalizer: "example.com/short", LabelChildren: true, SkipOwnerReference: true},
}
