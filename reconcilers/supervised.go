package reconcilers

import (
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leftoverDelay is after what time a child that is to go is looked at again, if no event tells that it is gone.
const leftoverDelay = 5 * time.Second

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

// suspendSlots is suspend for the children of a set. An identity without a child is dropped.
func suspendSlots[CT client.Object](s supervision, slots []childSlot[CT]) []childSlot[CT] {
	if s.says != Suspend {
		return slots
	}
	for i := range slots {
		slots[i].desired, slots[i].err = suspend(s, slots[i].desired)
	}
	return slices.DeleteFunc(slots, func(slot childSlot[CT]) bool {
		return gotype.IsNil(slot.desired) && len(slot.known) == 0
	})
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

// holdsFinalizer reports whether the resource has a finalizer that stays on it until the children are gone.
func (k *children[T, CT, CLT]) holdsFinalizer(resource T) bool {
	return slices.ContainsFunc(resource.GetFinalizers(), func(finalizer string) bool {
		return finalizer == k.finalizer || slices.Contains(managerFinalizers(k.manager), finalizer)
	})
}
