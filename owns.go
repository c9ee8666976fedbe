package espalier

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is a node that keeps one child object as it should be. [Owns] returns it.
type Child[Type, ChildType client.Object] struct {
	Switches[*Child[Type, ChildType], Type, ChildType]
}

// Owns returns a node that keeps the object that desired returns: it is created, kept as desired, and deleted when
// desired returns nil. The resource controls it, so it has to be in the namespace of the resource, or, if the resource
// has none, anywhere. The object is written by server-side apply, which leaves the fields of other writers alone. An
// object of that name that the resource does not control is not touched. [Switches] change that.
//
// A resource with a namespace cannot own a cluster-scoped object. Such an object has no owner reference, and a
// finalizer has it deleted with the resource, see [Switches.AnyNamespace]. The name of the node must not change then.
//
// The function gives the fields that matter, and nothing that depends on the time or on chance. It is not called for an
// object that is to be deleted, except with Absent and Unwatched, nor for a resource that is terminating. It may return
// [NotReady]: the object stays as it is then.
//
// If the function returns another name, the object of that name is created, and when it is ready, the old one is
// deleted. What may hold data stays under its old name, and the condition is False with NameChanged: a
// PersistentVolumeClaim, a StatefulSet, what is CreateOnly and not a Job, and each kind that is not one of Kubernetes
// itself. [OwnsEach] with one member makes a new object of a new name.
//
//   - Runs: desired, and makes the child agree with it.
//   - Stops: never on its own. While the node waits (Needs, After, Guard), the child stays as it is, and the nodes
//     after it run, but for those that need it.
//   - On error: an error that only a user can mend (AlreadyExists, Forbidden, Invalid), a kind that is not served, and
//     a name that may not change are reported by the condition, and the nodes after it run. Without a condition, they
//     are returned. Every other error is returned. A name that somebody else has taken counts as Blocked for a
//     [reconcilers.Supervisor], and is not returned below one. The events of that object bring the resource back.
//   - On deletion: deletes the child. One that is Unowned stays.
func Owns[Type, ChildType client.Object](
	name string, desired func(ctx context.Context, resource Type) (ChildType, error),
) *Child[Type, ChildType] {
	child := &Child[Type, ChildType]{}
	var one func(ctx context.Context, resource Type) ([]ChildType, error)
	if desired != nil {
		one = func(ctx context.Context, resource Type) ([]ChildType, error) {
			object, err := desired(ctx, resource)
			if gotype.IsNil(object) {
				return nil, err
			}
			return []ChildType{object}, err
		}
	}
	child.init(child, "Owns", name, one)
	child.make = child.literal
	return child
}

// Observes has the node call a function that copies something of the live object into the status of the resource, such
// as a number of replicas. Live is the object as it is in the cluster, or nil if there is none, and must not be
// changed. The function is called in each request in which that is known, also while the node waits, and not on
// deletion. An error is that of the node.
func (c *Child[Type, ChildType]) Observes(
	observe func(ctx context.Context, resource Type, live ChildType) error,
) *Child[Type, ChildType] {
	c.copy = func(ctx context.Context, resource Type, live []ChildType) error {
		var object ChildType
		if len(live) > 0 {
			object = live[0]
		}
		return observe(ctx, resource, object)
	}
	return c.with(observes, observe == nil)
}

// literal returns the literal that the node is made of.
func (c *Child[T, CT]) literal(finalized bool) engine[T] {
	free := finalized || c.has(unowned)
	child := &reconcilers.ChildReconciler[T, CT, client.ObjectList]{
		Name:                       c.name,
		ChildType:                  c.object,
		ChildListType:              c.listType(),
		ReflectedChildErrorReasons: reflectedReasons,
		DesiredChild: func(ctx context.Context, resource T) (CT, error) {
			desired, err := c.desiredOf(ctx, resource)
			if len(desired) == 0 {
				var none CT
				return none, err
			}
			return desired[0], err
		},
		ReflectChildStatusOnParent: func(ctx context.Context, _ T, live CT, err error) {
			p := passOf[CT](ctx)
			p.reflected = err
			if !gotype.IsNil(live) {
				p.live = []CT{live}
			}
		},
		ChildObjectManager: c.manager(finalized),
		OptionalKind:       true,
		Renaming:           reconcilers.ByKind,
		LabelChildren:      c.has(labeled) || free,
		RecreateImmutable:  c.has(recreates),
		ChildIsReady: func(ctx context.Context, live CT) bool {
			return c.has(unchecked) || !isNotReady(c.stateOf(ctx, live))
		},
	}
	child.SkipOwnerReference, child.ListOptions, child.OurChild = c.found(free)
	return child
}

// reflectedReasons are the reasons of errors that a condition reports.
var reflectedReasons = []metav1.StatusReason{
	metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
}

// manager returns the manager that writes the objects. Finalized is true if the resource cannot own them.
func (s *Switches[Self, T, CT]) manager(finalized bool) reconcilers.ObjectManager[CT] {
	applying := &reconcilers.ApplyingObjectManager[CT]{
		Name: s.name, Type: s.object, TrackDesired: finalized || s.has(unowned),
		FieldManager: fieldManager[T](), TakeOverFrom: s.earlier, TakeOverOnce: true,
	}
	if finalized {
		applying.Finalizer = s.finalizer()
	}
	var manager reconcilers.ObjectManager[CT] = applying
	if s.scales = isScaled(s.object); s.scales {
		manager = scaler[CT]{manager, fieldManager[T]()}
	}
	if s.has(createOnly) {
		manager = creator[CT]{manager, applying.TrackDesired}
	}
	return manager
}

// listType returns the type of lists of the objects, or nil if it is known.
func (s *Switches[Self, T, CT]) listType() client.ObjectList {
	object, ok := any(s.object).(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(object.GetAPIVersion())
	list.SetKind(object.GetKind() + "List")
	return list
}
