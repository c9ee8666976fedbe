package simulation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/testing/simulation/internal/state"
)

// NothingForeign returns the invariant that the operator changes and deletes only what is its own. That is:
//
//   - what it has created,
//   - what is owned, in its metadata, by something of its own, as the Pods of a Deployment that it created are, and
//   - what own says, which is asked about an object as it is before the write: usually the kinds that the operator
//     serves, whose objects users create, and what has its label. Nil says nothing.
//
// The objects of the options, and those that a user creates, are foreign unless own says something else. To take over
// an object that somebody else created is to touch it. Leases and Events are nobody's.
func NothingForeign(own func(obj *unstructured.Unstructured) bool) Invariant {
	if own == nil {
		own = func(*unstructured.Unstructured) bool { return false }
	}
	return Invariant{Name: "nothing foreign is touched", Check: func(w Write, s State) error {
		if !w.ByOperator() || w.before == nil || state.Passing(w.Kind) || s.isOwn(w.before, own, 0) {
			return nil
		}
		u := &unstructured.Unstructured{Object: w.before.Fields()}
		creator := s.CreatedBy(u)
		return fmt.Errorf("the operator does not own the object, which %s created", creator)
	}}
}

// deepest is how long a chain of owners may be. Owners may own each other.
const deepest = 10

// isOwn reports whether an object is the operator's.
func (s State) isOwn(obj *state.Object, own func(obj *unstructured.Unstructured) bool, depth int) bool {
	if s.options.isOperator(s.objects.Created(obj.UID).Actor) {
		return true
	}
	u := &unstructured.Unstructured{Object: obj.Fields()}
	if own(u) {
		return true
	}
	for _, owner := range u.GetOwnerReferences() {
		if depth < deepest && s.ownsOwn(owner, own, depth+1) {
			return true
		}
	}
	return false
}

// ownsOwn reports whether an owner is the operator's.
func (s State) ownsOwn(
	owner metav1.OwnerReference, own func(obj *unstructured.Unstructured) bool, depth int,
) bool {
	created := s.objects.Created(owner.UID)
	if s.options.isOperator(created.Actor) {
		return true
	}
	obj := s.objects.Get(created.Key)
	return obj != nil && obj.UID == owner.UID && s.isOwn(obj, own, depth)
}

// CreatesOnce returns the invariant that the operator does not create the same object again within a time in which
// nobody else wrote anything: an operator that deletes what it has just created, and creates it again, does not know
// what it wants. The controllers of the cluster and the API server do not count as somebody else.
func CreatesOnce(within time.Duration) Invariant {
	name := fmt.Sprintf("nothing is created twice within %v", within)
	return Invariant{Name: name, Check: func(w Write, s State) error {
		last, ok := s.last(w)
		if !ok || !s.options.isOperator(last.Actor) || !last.At.After(s.others) || w.Time.Sub(last.At) > within {
			return nil
		}
		return fmt.Errorf("the operator created the object %v ago, and nobody else wrote since", w.Time.Sub(last.At))
	}}
}

// last returns how the object that the operator creates came into being when it was created before.
func (s State) last(w Write) (state.Creation, bool) {
	if !w.ByOperator() || w.before != nil {
		return state.Creation{}, false
	}
	return s.objects.Previous(w.after.UID)
}
