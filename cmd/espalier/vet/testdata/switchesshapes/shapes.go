// Package switchesshapes has shapes that switches was not written from.
package switchesshapes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
)

type (
	node    = reconcilers.SubReconciler[*v1.Shop]
	literal = reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, client.ObjectList]
	set     = reconcilers.ChildSetReconciler[*v1.Shop, *corev1.Secret, client.ObjectList]
	typed   = reconcilers.ChildReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]
)

func secret(context.Context, *v1.Shop) (*corev1.Secret, error) { return nil, nil }

func secrets(context.Context, *v1.Shop) ([]*corev1.Secret, error) { return nil, nil }

func merge(current, desired *corev1.Secret) { current.Data = desired.Data }

// A function of the package.
func label(child *literal) {
	child.LabelChildren = true // want `.`
}

var named = espalier.Owns("Named", secret).Tune(label)

// A method value, and a switch around it.
type tuner struct{ recreate bool }

func (t tuner) tune(child *literal) {
	if t.recreate {
		child.RecreateImmutable = t.recreate // want `.`
	}
	child.Renaming = reconcilers.ByKind // want `.`
}

func (t tuner) Node() node { return espalier.Owns("Method", secret).Reports("Ready").Tune(t.tune) }

// A function that a function returns.
func unowned(skip bool) func(*literal) {
	return func(child *literal) {
		child.SkipOwnerReference = skip // want `.`
	}
}

var returned = espalier.Owns("Returned", secret).Tune(unowned(true))

// A variable of a function, and a helper that gets the literal.
func variable() node {
	tune := func(c *literal) {
		ready(c)
		c.OptionalKind = true // want `.`
	}
	n := espalier.Owns("Variable", secret)
	n.Tune(tune)
	return n
}

func ready(c *literal) {
	c.ChildIsReady = func(context.Context, *corev1.Secret) bool { return true } // want `.`
}

// What the node itself sets, of one and of a set.
var itself = espalier.Owns("Itself", secret).Tune(func(child *literal) {
	child.Name = "Other" // want `.`
	desired := child.DesiredChild
	child.DesiredChild = func(ctx context.Context, shop *v1.Shop) (*corev1.Secret, error) { // want `.`
		return desired(ctx, shop)
	}
})

var each = espalier.OwnsEach("Each", secrets).Labeled().Tune(func(children *set) {
	children.IdentifyChild = func(s *corev1.Secret) string { return s.Labels["id"] } // want `.`
})

// A whole literal.
var whole = espalier.Owns("Whole", secret).Tune(func(child *literal) {
	*child = literal{RecreateImmutable: true} // want `.`
})

// A field that a switch of this node takes.
var taken = espalier.Owns("Taken", secret).Unowned().Tune(func(child *literal) {
	child.OurChild = func(*v1.Shop, *corev1.Secret) bool { return true } // want `.`
})

// Literals with an object manager and the fields of the short form.
func both() node {
	return &typed{
		DesiredChild:       secret,
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "shop"},
		MergeBeforeUpdate:  merge, // want `.`
	}
}

var aggregate = reconcilers.AggregateReconciler[*corev1.Secret]{
	AggregateObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Secret]{MergeBeforeUpdate: merge},
	Sanitize:               func(*corev1.Secret) interface{} { return nil }, // want `.`
}

// A field that is set after the literal was made.
func assigned(sanitize bool) node {
	n := &reconcilers.ChildSetReconciler[*v1.Shop, *corev1.Secret, *corev1.SecretList]{
		DesiredChildren:    secrets,
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "shop"},
	}
	if sanitize {
		n.Sanitize = func(*corev1.Secret) interface{} { return nil } // want `.`
	}
	return n
}

// Near misses.

// Fields that no switch has, and an object manager.
var free = espalier.Owns("Free", secret).Tune(func(child *literal) {
	child.ListOptions = func(context.Context, *v1.Shop) []client.ListOption { return nil }
	child.ReflectedChildErrorReasons = []metav1.StatusReason{metav1.StatusReasonInvalid}
	child.ChildObjectManager = &reconcilers.UpdatingObjectManager[*corev1.Secret]{MergeBeforeUpdate: merge}
	child.Finalizer = "shop.example.com/secret"
})

// A field is read, or set to its zero value by a helper of another literal.
var reads = espalier.Owns("Reads", secret).Recreates().Tune(func(child *literal) {
	if child.RecreateImmutable {
		println(child.Name)
	}
	other := &typed{DesiredChild: secret}
	other.RecreateImmutable = true
	other.LabelChildren = child.LabelChildren
})

// Literals with one of both.
var manager = &typed{
	DesiredChild:       secret,
	RecreateImmutable:  true,
	LabelChildren:      true,
	ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "shop"},
}

var short = &typed{DesiredChild: secret, MergeBeforeUpdate: merge, Sanitize: func(*corev1.Secret) interface{} {
	return nil
}}

// A nil manager is none.
var none = &typed{DesiredChild: secret, ChildObjectManager: nil, MergeBeforeUpdate: merge}

// One of both, as asked.
func either(apply bool) node {
	n := &typed{DesiredChild: secret}
	if apply {
		n.ChildObjectManager = &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "shop"}
	} else {
		n.MergeBeforeUpdate = merge
	}
	return n
}

// A field that another switch would take.
var other = espalier.Owns("Other", secret).Labeled().Tune(func(child *literal) {
	child.OurChild = func(*v1.Shop, *corev1.Secret) bool { return true }
})
