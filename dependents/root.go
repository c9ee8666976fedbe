package dependents

import (
	"cmp"
	"context"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are what a resource consists of, for [NewRoot].
type Options[T client.Object] struct {
	// Default fills in what the user left open. The values are not written to the spec. Default: nothing.
	Default func(resource T)
	// Validate returns an error for a resource that cannot work. Its text is the message of the condition. Default:
	// each resource is valid.
	Validate func(resource T) error
	// Dependents are the objects that the resource needs.
	Dependents []Node[T]
	// Condition is the type of the condition that sums up the dependents, see [Set]. While the resource is not valid,
	// it is False with the reason Invalid. The status must have Conditions. Default: DependentsReady.
	Condition string
}

// NewRoot returns the root for resources that consist of dependents, see [espalier.For]. It fills in the defaults,
// checks the resource, and keeps its dependents in a [Set] of the name Dependents. A resource that is not valid is not
// retried until it changes, and its dependents stay as they are.
func NewRoot[T client.Object](config reconcilers.Config, options Options[T]) *reconcilers.ResourceReconciler[T] {
	root := espalier.For[T](config)
	root.Reconciler = &checked[T]{
		Set: &Set[T]{
			Name: "Dependents", Dependents: options.Dependents,
			Condition: cmp.Or(options.Condition, "DependentsReady"),
		},
		fillIn: options.Default, check: options.Validate,
	}
	return root
}

// checked is a [Set] that runs for valid resources.
type checked[T client.Object] struct {
	*Set[T]
	fillIn func(T)
	check  func(T) error
}

// Reconcile runs the set for a valid resource, and for a terminating one.
func (c *checked[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	if c.fillIn != nil {
		c.fillIn(resource)
	}
	if c.check == nil || resource.GetDeletionTimestamp() != nil {
		return c.Set.Reconcile(ctx, resource)
	}
	if err := c.check(resource); err != nil {
		reconcilers.SetCondition(ctx, resource, metav1.Condition{
			Type: c.Condition, Status: metav1.ConditionFalse, Reason: "Invalid",
			Message: message.Stable(err.Error()),
		})
		return reconcilers.Result{}, nil
	}
	return c.Set.Reconcile(ctx, resource)
}
