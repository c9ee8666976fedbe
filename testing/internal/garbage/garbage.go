// Package garbage decides what a garbage collector of Kubernetes does with an object. It follows "Garbage Collection"
// and "Owners and Dependents" in the Kubernetes documentation.
package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// State is what became of an owner.
type State int

const (
	// Unknown owners cannot be looked up: the reference has no UID, the kind is not served, or the owner is in a
	// namespace and the dependent is not. Their dependents stay as they are.
	Unknown State = iota
	// Gone owners are not there, or another object has their name.
	Gone
	// Waiting owners are deleted in the foreground.
	Waiting
	// Solid owners are there.
	Solid
)

// Action is what is to be done with an object. The zero value is nothing.
type Action struct {
	// Orphan has the dependents lose their reference to the object before all else.
	Orphan bool
	// RemoveFinalizer is the finalizer to remove, unless it is empty.
	RemoveFinalizer string
	// DropOwners are owners whose references are to be removed.
	DropOwners []types.UID
	// Unblock has no owner wait for the object any more. It comes before Delete.
	Unblock bool
	// Delete deletes the object by that policy, unless it is empty.
	Delete metav1.DeletionPropagation
}

// Decide returns what is to be done with an object. It asks for the states of owners and for the dependents only if
// they matter.
func Decide(
	obj metav1.Object, state func(metav1.OwnerReference) State, dependents func() []metav1.Object,
) Action {
	terminating := obj.GetDeletionTimestamp() != nil
	switch {
	case terminating && slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return Action{Orphan: true, RemoveFinalizer: metav1.FinalizerOrphanDependents}
	case DeletesDependents(obj):
		blocked := slices.ContainsFunc(dependents(), func(d metav1.Object) bool { return blocks(d, obj.GetUID()) })
		if blocked {
			return Action{}
		}
		return Action{RemoveFinalizer: metav1.FinalizerDeleteDependents}
	case !terminating && len(obj.GetOwnerReferences()) > 0:
		return decideDependent(obj, state, dependents)
	}
	return Action{}
}

// decideDependent deletes an object that has no owner any more, or drops the references to those that are gone.
func decideDependent(
	obj metav1.Object, state func(metav1.OwnerReference) State, dependents func() []metav1.Object,
) Action {
	states := map[State][]types.UID{}
	for _, reference := range obj.GetOwnerReferences() {
		found := Unknown
		if reference.UID != "" {
			found = state(reference)
		}
		states[found] = append(states[found], reference.UID)
	}
	lost := slices.Concat(states[Gone], states[Waiting])
	switch {
	case len(states[Unknown]) > 0 || len(lost) == 0:
		return Action{}
	case len(states[Solid]) > 0:
		return Action{DropOwners: lost}
	}
	policy := propagation(obj, len(states[Waiting]) > 0, dependents)
	// Otherwise owners in a circle would wait for each other.
	unblock := policy == metav1.DeletePropagationForeground && slices.ContainsFunc(dependents(), DeletesDependents)
	return Action{Unblock: unblock, Delete: policy}
}

// propagation is how an object is deleted that has no owner any more.
func propagation(
	obj metav1.Object, waiting bool, dependents func() []metav1.Object,
) metav1.DeletionPropagation {
	switch {
	case waiting && len(dependents()) > 0:
		return metav1.DeletePropagationForeground
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// DeletesDependents reports whether an object waits for its dependents to be deleted.
func DeletesDependents(obj metav1.Object) bool {
	return obj.GetDeletionTimestamp() != nil &&
		slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// blocks reports whether a dependent keeps its owner from being removed.
func blocks(dependent metav1.Object, owner types.UID) bool {
	references := dependent.GetOwnerReferences()
	i := slices.IndexFunc(references, func(r metav1.OwnerReference) bool { return r.UID == owner })
	return i >= 0 && ptr.Deref(references[i].BlockOwnerDeletion, false)
}

// Unblock lets no owner wait for an object.
func Unblock(obj metav1.Object) {
	references := slices.Clone(obj.GetOwnerReferences())
	for i := range references {
		references[i].BlockOwnerDeletion = new(false)
	}
	obj.SetOwnerReferences(references)
}

// DropOwners removes the references to some owners.
func DropOwners(obj metav1.Object, uids ...types.UID) {
	kept := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return slices.Contains(uids, r.UID)
	})
	if len(kept) == 0 {
		kept = nil
	}
	obj.SetOwnerReferences(kept)
}

// RemoveFinalizer removes a finalizer.
func RemoveFinalizer(obj metav1.Object, finalizer string) {
	obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == finalizer
	}))
}
