package reconcilers

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Supervision says what the nodes below a [Supervisor] do with their objects.
type Supervision string

const (
	// Maintain keeps the objects as desired. It is the zero value, and counts where there is no supervisor.
	Maintain Supervision = ""
	// Suspend keeps the objects so that nothing runs, see [Supervisor.Suspend].
	Suspend Supervision = "Suspend"
	// Withdraw deletes the objects, as if nothing were desired. What a node has outside of Kubernetes is cleaned up as
	// if the resource were deleted. A [SyncReconciler] does not run.
	Withdraw Supervision = "Withdraw"
)

// Supervisor is told by the nodes below it how their objects are, and decides whether the objects are to run. A node
// puts itself in charge with [WithSupervisor]. [ChildReconciler], [ChildSetReconciler] and ComponentReconciler obey it.
// A node of your own that writes objects does so, too: it asks [SupervisorOf], and calls Suspend and Observe.
//
// A terminating resource has no supervision: nodes handle it as always.
type Supervisor interface {
	// Supervision is the same for the whole request.
	Supervision() Supervision
	// Suspend changes a desired object so that it does not run. If it returns true, the object is to be deleted as long
	// as the supervision is [Suspend]. It is called only then, with an object that the node may change.
	Suspend(desired client.Object) (remove bool, err error)
	// SuspensionOf says how a live object that is to be suspended is: Suspended, Suspending or PendingSuspension. It
	// does not change the object, and may be called concurrently.
	SuspensionOf(live client.Object) apis.Health
	// Observe takes what a node found out about one object. It may be called concurrently.
	Observe(object ObservedObject)
}

// ObservedObject is what a node found out about one object.
type ObservedObject struct {
	// Node is the path of the node.
	Node string
	// Kind, Namespace and Name identify the object. The name is empty if it is not known yet.
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Object is as it is in the cluster, and must not be changed. It is nil if it is not there, or not known.
	Object client.Object
	// Health is how the object is, if the node knows better than the rules for its kind. Object is set beside it if the
	// object is there: one that waits, and so is Blocked, does not mean Down as long as what is there is healthy.
	// Optional.
	Health *apis.Health
	// Err says why the object is not as desired. It is nil if it is, or will be.
	Err error
	// Auxiliary means that neither an error nor the health of the object counts.
	Auxiliary bool
	// Unchecked means that the health of the object does not count. An error does.
	Unchecked bool
}

type supervisorKey struct{}

// WithSupervisor returns a context in which nodes obey s. The innermost supervisor counts.
func WithSupervisor(ctx context.Context, s Supervisor) context.Context {
	return context.WithValue(ctx, supervisorKey{}, s)
}

// SupervisorOf returns the supervisor of ctx, or nil.
func SupervisorOf(ctx context.Context) Supervisor {
	s, _ := ctx.Value(supervisorKey{}).(Supervisor)
	return s
}

// SupervisionOf returns what a node has to do with its objects: what the supervisor of ctx says, or else [Maintain].
func SupervisionOf(ctx context.Context, resource client.Object) Supervision {
	return supervisionIn(ctx, resource).says
}

// supervision is what a supervisor wants of the children of a node in one request. It is zero without a supervisor, and
// for a terminating resource.
type supervision struct {
	by   Supervisor
	says Supervision
}

func supervisionIn(ctx context.Context, resource client.Object) supervision {
	s := SupervisorOf(ctx)
	if s == nil || resource.GetDeletionTimestamp() != nil {
		return supervision{}
	}
	return supervision{by: s, says: s.Supervision()}
}

// CleansUp reports whether a node cleans up: the resource is terminating, or the supervisor of ctx says [Withdraw].
func CleansUp(ctx context.Context, resource client.Object) bool {
	return resource.GetDeletionTimestamp() != nil || SupervisionOf(ctx, resource) == Withdraw
}

// suspend returns desired as it has to be, or nil if it has to go.
func suspend[CT client.Object](s supervision, desired CT) (CT, error) {
	if s.says != Suspend || gotype.IsNil(desired) {
		return desired, nil
	}
	// The author may return the same object again when the supervision is another one.
	suspended := copyOf(desired)
	remove, err := s.by.Suspend(suspended)
	if err != nil {
		return desired, err
	}
	if remove {
		var none CT
		return none, nil
	}
	return suspended, nil
}

// outcome is what became of one child.
type outcome[CT client.Object] struct {
	// found are the objects that were the child before.
	found []CT
	// desired is the child as it should be, or nil.
	desired CT
	// child is the child as it is now, or nil.
	child CT
	// kept reports whether the child was left as it was.
	kept bool
	// err is why the child is not as desired.
	err error
}

// observed returns what a supervisor is told of one child: the child if it is desired, and otherwise what is left of
// it.
func (o outcome[CT]) observed(now time.Time) []ObservedObject {
	switch {
	case !gotype.IsNil(o.desired):
		object := o.child
		if o.err != nil && gotype.IsNil(object) && len(o.found) == 1 {
			// Nothing was written.
			object = o.found[0]
		}
		return []ObservedObject{observedObject(o.desired, object, o.err)}
	case o.kept && o.err == nil:
		if gotype.IsNil(o.child) {
			return nil
		}
		return []ObservedObject{observedObject(o.child, o.child, nil)}
	case len(o.found) == 0 && o.err != nil:
		return []ObservedObject{{Err: o.err}}
	}
	left := make([]ObservedObject, 0, len(o.found))
	for _, child := range o.found {
		if o.err == nil && child.GetDeletionTimestamp() == nil {
			// The delete was accepted. Its finalizers or its pods may keep the child for a while.
			child = copyOf(child)
			child.SetDeletionTimestamp(new(metav1.NewTime(now)))
		}
		left = append(left, observedObject(child, child, o.err))
	}
	return left
}

// observedObject names a child as named does. The object may be nil.
func observedObject[CT client.Object](named, object CT, err error) ObservedObject {
	observed := ObservedObject{Namespace: named.GetNamespace(), Name: named.GetName(), Err: err}
	if !gotype.IsNil(object) {
		observed.Namespace, observed.Name = object.GetNamespace(), object.GetName()
		observed.Object = object
	}
	return observed
}

// observe tells the supervisor, if there is one, what became of one child.
func (k *children[T, CT, CLT]) observe(ctx context.Context, config Config, s supervision, o outcome[CT]) {
	if s.by != nil && !errors.Is(o.err, errKindSyncing) {
		k.report(ctx, config, s, o)
	}
}

// leftoverDelay is after what time a child that is to go is looked at again, if no event tells that it is gone.
const leftoverDelay = 5 * time.Second

// report tells the supervisor what became of one child.
func (k *children[T, CT, CLT]) report(ctx context.Context, config Config, s supervision, o outcome[CT]) {
	observed := o.observed(rtime.RetrieveNow(ctx))
	for _, object := range observed {
		object.Node = RetrievePath(ctx)
		if config.Client != nil {
			object.Kind = kindOf(config.Client, k.childType)
		}
		s.by.Observe(object)
	}
	leaves := gotype.IsNil(o.desired) && !o.kept && o.err == nil && len(observed) > 0
	if leaves && k.unowned && !k.tracked && k.finalizer == "" {
		contextOf(ctx).state.wakeAfter(leftoverDelay)
	}
}
