package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Children is a node that keeps a set of child objects of one type as it should be. [OwnsEach] returns it. It is a
// [reconcilers.ChildSetReconciler], whose fields may be changed before the first use.
type Children[Type, ChildType client.Object] struct {
	reconcilers.ChildSetReconciler[Type, ChildType, client.ObjectList]

	// condition is the type of the condition that it reports; empty for none.
	condition string
	// desired is the function of the author.
	desired func(ctx context.Context, resource Type) ([]ChildType, error)
	role    role
}

// OwnsEach returns a node that keeps the objects that desired returns as [Owns] keeps one. A child is identified by its
// name: a child whose name is not returned any more is deleted.
//
//   - Runs: desired, and makes each child agree with it, in the order of the names.
//   - Stops: at the first child whose error is returned.
//   - On error: as [Owns].
//   - On deletion: deletes the children.
func OwnsEach[Type, ChildType client.Object](
	name string, desired func(ctx context.Context, resource Type) ([]ChildType, error),
) *Children[Type, ChildType] {
	children := &Children[Type, ChildType]{desired: desired}
	children.Name = name
	children.DesiredChildren = children.desire
	children.IdentifyChild = func(child ChildType) string { return child.GetName() }
	children.ChildObjectManager = &reconcilers.ApplyingObjectManager[ChildType]{FieldManager: fieldManager[Type]()}
	children.ReflectChildrenStatusOnParentWithResult = children.reflect
	children.ReflectedChildErrorReasons = reflectedReasons
	return children
}

// Reports has the node report its children by a condition of that type: like the first child, in the order of the
// names, that is not ready, see [Child.Reports], with the number of children that are ready. Errors come first, those
// of all children in one message. If an error is returned, the condition stays as it was.
func (c *Children[Type, ChildType]) Reports(conditionType string) *Children[Type, ChildType] {
	c.condition = conditionType
	return c
}

// Recreates is [Child.Recreates] for a set.
func (c *Children[Type, ChildType]) Recreates() *Children[Type, ChildType] {
	c.RecreateImmutable = true
	return c
}

// Labeled is [Child.Labeled] for a set.
func (c *Children[Type, ChildType]) Labeled() *Children[Type, ChildType] {
	c.LabelChildren = true
	return c
}

// Auxiliary is [Child.Auxiliary] for a set.
func (c *Children[Type, ChildType]) Auxiliary() *Children[Type, ChildType] {
	c.role.auxiliary = true
	return c
}

// Unchecked is [Child.Unchecked] for a set.
func (c *Children[Type, ChildType]) Unchecked() *Children[Type, ChildType] {
	c.role.unchecked = true
	return c
}

// withheld is where desire leaves a NotReadyError for reflect.
type withheld struct {
	err *NotReadyError
}

type withheldKey struct{}

// Reconcile makes the children as they should be, see [OwnsEach].
func (c *Children[Type, ChildType]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	return c.role.reconcile(ctx, c.Name, resource, func(ctx context.Context) (reconcilers.Result, error) {
		return c.reconcile(ctx, resource)
	})
}

func (c *Children[Type, ChildType]) reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	kept := &withheld{}
	ctx = context.WithValue(ctx, withheldKey{}, kept)
	before := reconcilers.GetCondition(resource, c.condition)
	result, err := c.ChildSetReconciler.Reconcile(ctx, resource)
	if s := reconcilers.SupervisorOf(ctx); s != nil && kept.err != nil {
		observed := reconcilers.ObservedObject{
			Node: reconcilers.RetrievePath(reconcilers.Enter(ctx, c.Name)), Err: kept.err,
		}
		if config, err := reconcilers.RetrieveConfig(ctx); err == nil {
			observed.Kind, _ = config.GroupVersionKindFor(c.ChildType) // the error counts without the kind
		}
		s.Observe(observed)
	}
	if err != nil && c.condition != "" {
		// Not all children are among those that were reflected.
		if before == nil {
			reconcilers.RemoveCondition(resource, c.condition)
		} else {
			reconcilers.SetCondition(ctx, resource, *before)
		}
	}
	return result, err
}

// desire calls the function of the author. A set reflects no error of its DesiredChildren, so a NotReadyError becomes
// the request to leave the children as they are.
func (c *Children[Type, ChildType]) desire(ctx context.Context, resource Type) ([]ChildType, error) {
	desired, err := c.desired(ctx, resource)
	if notReady := asNotReady(err); notReady != nil {
		if kept, ok := ctx.Value(withheldKey{}).(*withheld); ok {
			kept.err = notReady
		}
		return nil, reconcilers.OnlyReconcileChildStatus
	}
	return desired, err
}

func (c *Children[Type, ChildType]) reflect(
	ctx context.Context, resource Type, result reconcilers.ChildSetResult[ChildType],
) (reconcilers.Result, error) {
	if resource.GetDeletionTimestamp() != nil {
		return reconcilers.Result{}, nil
	}
	err := result.AggregateError()
	if kept, ok := ctx.Value(withheldKey{}).(*withheld); ok && kept.err != nil {
		err = kept.err
	}
	delay := reconcilers.Result{RequeueAfter: delayOf(err)}
	if c.condition == "" {
		if asNotReady(err) != nil {
			err = nil
		}
		return delay, err
	}
	condition := conditionOfError(err)
	if err == nil {
		var states []childState
		for _, child := range result.Existing() {
			states = append(states, stateOf(ctx, child))
		}
		condition = conditionOfChildren(states)
	}
	condition.Type = c.condition
	reconcilers.SetCondition(ctx, resource, condition)
	return delay, nil
}

// SetupWithManager sets up the [reconcilers.ChildSetReconciler]. It also checks that the resource can have
// conditions.
func (c *Children[Type, ChildType]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := checkStatus(ctx, "OwnsEach", c.Name, c.condition); err != nil {
		return err
	}
	return c.ChildSetReconciler.SetupWithManager(ctx, mgr, bldr)
}

// Describe returns what the node does with the children's type, and the condition that it reports.
func (c *Children[Type, ChildType]) Describe() reconcilers.Description {
	description := c.ChildSetReconciler.Describe()
	description.Conditions = conditions(c.condition)
	return description
}
