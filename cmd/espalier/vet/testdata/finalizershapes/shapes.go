// Package finalizershapes has shapes that finalizer was not written from.
package finalizershapes

import (
	"context"
	"flag"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/component"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
)

type node = reconcilers.SubReconciler[*v1.Shop]

func noop(context.Context, *v1.Shop) error { return nil }

func secret(context.Context, *v1.Shop) (*corev1.Secret, error) { return nil, nil }

// Constants, one made of others.
const (
	prefix = "shop"
	joined = prefix + "-cleanup"
	plain  = "registration"
)

var constant = espalier.Runs("Constant", noop).Every(1).Finalizes(joined, noop) // want `.`

// A literal, with an element of a table.
func literals() []node {
	return []node{
		&reconcilers.WithFinalizer[*v1.Shop]{Finalizer: plain, Reconciler: constant}, // want `.`
		&reconcilers.WithFinalizer[*v1.Shop]{
			Finalizer:  "finalizers.example.com", // want `.`
			Reconciler: constant,
		},
	}
}

// Literals of children and of their managers.
var child = &reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]{
	Finalizer:    "secret-cleanup", // want `.`
	DesiredChild: secret,
	ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
		Finalizer:         "manager", // want `.`
	},
}

// A field that is set afterwards.
func assigned() node {
	n := &reconcilers.WithFinalizer[*v1.Shop]{Reconciler: constant}
	n.Finalizer = "directory" // want `.`
	return n
}

// A component, and the options of a root.
var installed = &component.ComponentReconciler[*v1.Shop]{
	Prefix:    "platform.example.com",
	Finalizer: "component", // want `.`
}

var options = component.Options[*v1.Shop]{Finalizer: "root"} // want `.`

// The function that adds it.
func added(ctx context.Context, shop *v1.Shop) error {
	return reconcilers.AddFinalizer(ctx, shop, "account") // want `.`
}

var addedNode = espalier.Runs("Added", added)

// A helper that gets it, and a variable.
func guarded(finalizer string, inner node) node {
	return &reconcilers.WithFinalizer[*v1.Shop]{Finalizer: finalizer, Reconciler: inner} // want `.`
}

var name = "billing"

var helped = guarded("bucket", constant)

var byVariable = guarded("shop.example.com/x", espalier.Runs("Billing", noop).Finalizes(name, noop)) // want `.`

// A path without a domain.
var empty = espalier.Runs("Empty", noop).Finalizes("/cleanup", noop) // want `.`

// Near misses.

const domain = "shop.example.com"

var (
	whole  = espalier.Runs("Whole", noop).Finalizes(domain+"/whole", noop)
	helper = guarded("shop.example.com/helper", whole)
	none   = &reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]{Finalizer: ""}
	sprint = espalier.Runs("Sprint", noop).Finalizes(fmt.Sprintf("%s/sprint", domain), noop)
	given  = flag.String("finalizer", "registration", "the path of the finalizer")
)

var fromFlag = espalier.Runs("Flag", noop).Finalizes(domain+"/"+*given, noop)

// A finalizer that an earlier release has put on is taken off.
var former = espalier.Runs("Former", func(ctx context.Context, shop *v1.Shop) error {
	return reconcilers.ClearFinalizer(ctx, shop, "registration")
})

// Kubernetes has finalizers of its own.
var foreground = espalier.Runs("Foreground", func(ctx context.Context, shop *v1.Shop) error {
	return reconcilers.AddFinalizer(ctx, shop, metav1.FinalizerDeleteDependents)
})

// Not every string that is called so is a finalizer of a node.
type row struct{ Finalizer string }

var rows = []row{{Finalizer: "registration"}}
