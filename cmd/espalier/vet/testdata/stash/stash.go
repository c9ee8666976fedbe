// Package stash has values of the stash that nobody stores, and such that somebody does.
package stash

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

const (
	direct stash.Key = "example.com/direct"
	Shared stash.Key = "example.com/shared"
)

type quotas = stash.Stasher[int]

var (
	quota    = stash.New[int]("example.com/quota")
	helper   = stash.New[string]("example.com/helper")
	needed   = reconcilers.NewStasher[*corev1.Secret]("example.com/needed")
	aliased  quotas
	password = stash.New[string]("example.com/password")
	found    = stash.New[*corev1.Secret]("example.com/found")
	shared   = stash.New[int](Shared)
	same     = stash.New[int]("example.com/same")
	again    = stash.New[int]("example.com/same")
	tested   = stash.New[int]("example.com/tested")
	// Exported is stored by another package.
	Exported = stash.New[int]("example.com/exported")
)

func init() { aliased = stash.New[int]("example.com/aliased") }

var _ = espalier.Runs("Direct", func(ctx context.Context, pod *corev1.Pod) error {
	if quota.Has(ctx) && quota.RetrieveOrDie(ctx) > 1 { // want `no node of this package stores the value of "example.com/quota"`
		return errors.New("too many")
	}
	return nil
})

// By its key, and by the variables of package reconcilers.
func run(ctx context.Context, pod *corev1.Pod) error {
	if stash.RetrieveValue(ctx, direct) != nil { // want `"example.com/direct"`
		return nil
	}
	_ = reconcilers.RetrieveValue(ctx, "example.com/variable") // want `"example.com/variable"`
	return nil
}

// Through a helper, which gets it.
func read(ctx context.Context, values stash.Stasher[string]) string {
	return values.RetrieveOrEmpty(ctx) // want `"example.com/helper"`
}

var _ = espalier.Runs("Helper", func(ctx context.Context, pod *corev1.Pod) error {
	pod.Status.Message = read(ctx, helper)
	return nil
})

// What needs a value does not store it.
var _ = espalier.Runs("Needs", func(ctx context.Context, pod *corev1.Pod) error {
	_, err := needed.RetrieveOrError(ctx) // want `"example.com/needed"`
	return err
}).Needs(needed)

// In a field of a struct, and a method value.
type node struct{ quotas }

func (n *node) run(ctx context.Context, pod *corev1.Pod) error {
	_ = n.RetrieveOrDie(ctx) // want `"example.com/field"`
	return nil
}

var _ = espalier.Runs("Field", (&node{stash.New[int]("example.com/field")}).run)

// In a variable of a function, in a closure.
func tree() *espalier.Run[*corev1.Pod] {
	local := stash.New[int]("example.com/local")
	return espalier.Runs("Local", func(ctx context.Context, pod *corev1.Pod) error {
		_ = local.RetrieveOrDie(ctx)   // want `"example.com/local"`
		_ = aliased.RetrieveOrDie(ctx) // want `"example.com/aliased"`
		_ = tested.RetrieveOrDie(ctx)  // want `"example.com/tested"`
		return nil
	})
}

// In a field of a global variable, by a method value.
var group = struct{ read, both stash.Stasher[string] }{
	read: stash.New[string]("example.com/read"), both: stash.New[string]("example.com/both"),
}

var _ = espalier.Runs("Method", func(ctx context.Context, pod *corev1.Pod) error {
	read, store := group.read.RetrieveOrEmpty, group.both.Store // want `"example.com/read"`
	store(ctx, read(ctx))
	_ = group.both.RetrieveOrDie(ctx)
	return nil
})

// What follows is right.

func stored(ctx context.Context, pod *corev1.Pod) error {
	password.Store(ctx, "secret")
	store(ctx, again)
	reconcilers.StashValue(ctx, "example.com/raw", 1)
	return nil
}

func store(ctx context.Context, values stash.Stasher[int]) { values.Store(ctx, 1) }

var _ = espalier.Reads("Secret", found, func(context.Context, *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Name: "found"}
})

func right(ctx context.Context, pod *corev1.Pod) error {
	_ = password.RetrieveOrDie(ctx)
	_ = found.RetrieveOrDie(ctx)
	_ = shared.RetrieveOrDie(ctx)
	_ = Exported.RetrieveOrDie(ctx)
	_ = same.RetrieveOrDie(ctx)
	_ = stash.RetrieveValue(ctx, "example.com/raw")
	_ = stash.RetrieveValue(ctx, "reconciler.io/runtime:request")
	return nil
}
