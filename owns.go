package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is a node that keeps one child object as it should be. [Owns] returns it. It is a
// [reconcilers.ChildReconciler], whose fields may be changed before the first use.
type Child[Type, ChildType client.Object] struct {
	reconcilers.ChildReconciler[Type, ChildType, client.ObjectList]

	// condition is the type of the condition that it reports; empty for none.
	condition string
	role      role
}

// Owns returns a node that keeps the object that desired returns: it is created, kept as desired, and deleted when
// desired returns nil. The resource controls it, so it has to be in the namespace of the resource, or, if the resource
// has none, anywhere. The object is written by server-side apply, which leaves the fields of other writers alone. An
// object of that name that the resource does not control is not touched.
//
// The function gives the fields that matter, and nothing that depends on the time or on chance. It is not called for a
// resource that is terminating. It may return [NotReady].
//
//   - Runs: desired, and makes the child agree with it.
//   - Stops: never on its own.
//   - On error: an error that only a user can mend (AlreadyExists, Forbidden, Invalid) is reported by the condition,
//     and the nodes after it run. Without a condition, it is returned. Every other error is returned.
//   - On deletion: deletes the child.
func Owns[Type, ChildType client.Object](
	name string, desired func(ctx context.Context, resource Type) (ChildType, error),
) *Child[Type, ChildType] {
	child := &Child[Type, ChildType]{}
	child.Name = name
	child.DesiredChild = desired
	child.ChildObjectManager = &reconcilers.ApplyingObjectManager[ChildType]{FieldManager: fieldManager[Type]()}
	child.ReflectChildStatusOnParentWithResult = child.reflect
	child.ReflectedChildErrorReasons = reflectedReasons
	return child
}

// reflectedReasons are the reasons of errors that a condition reports.
var reflectedReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, statusNotReady,
}

// Reports has the node report the child by a condition of that type: True with the reason Ready if the child is ready
// by the rules of kstatus and of its kind, or NotDesired if there is to be none; False with InProgress, Failed,
// Terminating, the reason of the API server, or that of [NotReady], and a message. Package health has the rules of
// kinds, by which a child that does not become ready by itself has failed at once.
func (c *Child[Type, ChildType]) Reports(conditionType string) *Child[Type, ChildType] {
	c.condition = conditionType
	return c
}

// Recreates has the node delete the child and create it again if the API server refuses a change of an immutable field,
// see the field RecreateImmutable of [reconcilers.ChildReconciler].
func (c *Child[Type, ChildType]) Recreates() *Child[Type, ChildType] {
	c.RecreateImmutable = true
	return c
}

// Labeled has the node put its name on the child as the label [reconcilers.NodeLabel], and count only such an object as
// its child. It is needed if several nodes of a tree own objects of one type.
func (c *Child[Type, ChildType]) Labeled() *Child[Type, ChildType] {
	c.LabelChildren = true
	return c
}

// Auxiliary has a feature do without the child: its [reconcilers.Supervisor] is told that neither an error nor the
// health of the child counts. An error is logged and not returned, so the nodes after this one run. The node is tried
// again after ten seconds, unless the error is durable. On deletion, and on [reconcilers.Withdraw], an error is
// returned.
func (c *Child[Type, ChildType]) Auxiliary() *Child[Type, ChildType] {
	c.role.auxiliary = true
	return c
}

// Unchecked has a feature not wait until the child is healthy: its [reconcilers.Supervisor] is told that the health of
// the child does not count. An error does.
func (c *Child[Type, ChildType]) Unchecked() *Child[Type, ChildType] {
	c.role.unchecked = true
	return c
}

// Reconcile makes the child as it should be, see [Owns].
func (c *Child[Type, ChildType]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	return c.role.reconcile(ctx, c.Name, resource, func(ctx context.Context) (reconcilers.Result, error) {
		return c.ChildReconciler.Reconcile(ctx, resource)
	})
}

func (c *Child[Type, ChildType]) reflect(
	ctx context.Context, resource Type, child ChildType, err error,
) (reconcilers.Result, error) {
	result := reconcilers.Result{RequeueAfter: delayOf(err)}
	if c.condition == "" {
		if asNotReady(err) != nil {
			err = nil
		}
		return result, err
	}
	ReflectChild[Type, ChildType](c.condition)(ctx, resource, child, err)
	return result, nil
}

// SetupWithManager sets up the [reconcilers.ChildReconciler]. It also checks that the resource can have conditions.
func (c *Child[Type, ChildType]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := checkStatus(ctx, "Owns", c.Name, c.condition); err != nil {
		return err
	}
	return c.ChildReconciler.SetupWithManager(ctx, mgr, bldr)
}

// Describe returns what the node does with the child's type, and the condition that it reports.
func (c *Child[Type, ChildType]) Describe() reconcilers.Description {
	description := c.ChildReconciler.Describe()
	description.Conditions = conditions(c.condition)
	return description
}

// conditions returns a list of the types that are not empty.
func conditions(conditionType string) []string {
	if conditionType == "" {
		return nil
	}
	return []string{conditionType}
}
