// Package effects has nodes with effects before the node with the finalizer, and such behind it.
package effects

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type syncing = reconcilers.SyncReconciler[*corev1.Pod]

func nothing(context.Context, *corev1.Pod) error { return nil }

// Direct, in the short form.
var _ = espalier.For(reconcilers.Config{},
	espalier.Runs("Posts", func(context.Context, *corev1.Pod) error { // want `before the node with the finalizer`
		_, err := http.Post("https://example.com", "text/plain", &bytes.Buffer{})
		return err
	}),
	espalier.Runs("Guarded", behind).Finalizes("example.com/guarded", nothing),
	espalier.Runs("Behind", behind),
)

func behind(context.Context, *corev1.Pod) error { return os.Remove("behind") }

// A literal of an alias, through a helper, in a sequence.
var _ = reconcilers.Sequence[*corev1.Pod]{
	&syncing{Sync: func(context.Context, *corev1.Pod) error { return write("file") }}, // want `before the node with the finalizer`
	&reconcilers.WithFinalizer[*corev1.Pod]{Finalizer: "example.com/guard", Reconciler: &syncing{Sync: behind}},
}

func write(name string) error {
	return os.WriteFile(name, nil, 0o600)
}

// A method value, with a switch behind it, in a variable.
type runner struct{ http *http.Client }

func (r *runner) run(ctx context.Context, _ *corev1.Pod) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://example.com", nil)
	if err != nil {
		return err
	}
	_, err = r.http.Do(request)
	return err
}

func tree(r *runner) any {
	first := espalier.Runs("Method", r.run).Reports("Done") // want `before the node with the finalizer`
	return espalier.Steps(first, guard())
}

func guard() *espalier.Run[*corev1.Pod] {
	return espalier.Runs("Guard", nothing).Finalizes("example.com/guard", nothing).Reports("Guarded")
}

// A closure that a function returns, inside a branch.
func starts(name string) func(context.Context, *corev1.Pod) error {
	return func(ctx context.Context, _ *corev1.Pod) error {
		return exec.CommandContext(ctx, name).Run()
	}
}

var _ = espalier.When("When", func(context.Context, *corev1.Pod) bool { return true },
	espalier.Runs("Closure", starts("true")).After("Other"), // want `before the node with the finalizer`
	guard(),
)

// A generic function.
func list[T client.Object](first func(context.Context, T) error, guard reconcilers.SubReconciler[T]) any {
	return reconcilers.Sequence[T]{
		espalier.Runs("Generic", first), // want `before the node with the finalizer`
		&reconcilers.WithFinalizer[T]{Finalizer: "example.com/generic", Reconciler: guard},
	}
}

var _ = list(func(context.Context, *corev1.Pod) error {
	return os.Mkdir("generic", 0o700)
}, guard())

// What follows is right.

var _ = espalier.For(reconcilers.Config{},
	espalier.Runs("Asks", func(context.Context, *corev1.Pod) error {
		_, err := http.Get("https://example.com")
		return err
	}),
	espalier.Runs("First", behind).Finalizes("example.com/first", nothing),
	espalier.Runs("Second", behind).Finalizes("example.com/second", nothing),
)

var _ = espalier.For(reconcilers.Config{}, espalier.Runs("Alone", behind))

// A node that a loop changes.
func needs(keys []espalier.Keyed) any {
	node := espalier.Runs("Loop", nothing)
	for _, key := range keys {
		node = node.Needs(key)
	}
	return espalier.Steps(node, guard())
}
