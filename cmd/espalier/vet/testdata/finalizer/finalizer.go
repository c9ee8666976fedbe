// Package finalizer has finalizers without a domain, and such with one.
package finalizer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type guard = reconcilers.WithFinalizer[*corev1.Pod]

const bare, domain = "cleanup", "shop.example.com/"

var variable = "slashless"

func run(context.Context, *corev1.Pod) error { return nil }

// In a literal, by a constant.
var _ = &reconcilers.WithFinalizer[*corev1.Pod]{Finalizer: bare} // want `the finalizer "cleanup" is not a domain and a path`

// In the short form, by a variable.
var _ = espalier.Runs("Runs", run).Finalizes(variable, run) // want `"slashless"`

// A field that is set later, through an embedded alias.
func embedded() any {
	node := struct{ guard }{}
	node.Finalizer = "/path" // want `"/path"`
	return &node
}

// Through a helper, in a generic function, by a function, in a closure.
func child[T client.Object](name string) any {
	return &reconcilers.ChildSetReconciler[T, *corev1.Pod, *corev1.PodList]{
		Finalizer: name, // want `"generic"`
	}
}

var _ = []any{child[*corev1.Pod]("generic"), child[*corev1.Pod]("example.com/generic")}

func name() string { return "shop.example.com" }

var _ = func() any { return &reconcilers.UpdatingObjectManager[*corev1.Pod]{Finalizer: name()} } // want `"shop.example.com"`

// In calls of a node of one's own.
func add(ctx context.Context, pod *corev1.Pod) error {
	if err := reconcilers.AddFinalizer(ctx, pod, bare); err != nil { // want `"cleanup"`
		return err
	}
	defer reconcilers.ClearFinalizer(ctx, pod, bare)
	return reconcilers.ClearFinalizer(ctx, pod, domain+bare)
}

// In a field of a variable, and a result among others.
var settings = struct{ finalizer string }{"domainless"}

func finalizerOf(kind string) string {
	if kind == "" {
		return "none"
	}
	return domain + kind
}

var (
	_ = espalier.Runs("Settings", run).Finalizes(settings.finalizer, run) // want `"domainless"`
	_ = &guard{Finalizer: finalizerOf("pod")}                             // want `"none"`
)

// What follows is right.

var _ = []any{
	&guard{Finalizer: domain + bare},
	&guard{},
	&reconcilers.ChildReconciler[*corev1.Pod, *corev1.Pod, *corev1.PodList]{Finalizer: "example.com/" + variable},
	espalier.Runs("Runs", run).Finalizes("example.com/runs", run),
	struct{ Finalizer string }{"mine"},
	&guard{Finalizer: "historic"}, //nolint:finalizer // An earlier release has put it on resources.
	&guard{Finalizer: "historic"}, //nolint:unused,espalier
	&guard{Finalizer: "historic"}, //nolint:status // want `"historic"`
}
