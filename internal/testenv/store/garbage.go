package store

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/registry"
)

// CollectGarbage does what the controllers of the control plane do in the end: it deletes dependents whose owners are
// gone, ends foreground and orphan deletions, empties and removes terminating namespaces, and deletes the instances of
// definitions that are being deleted. It reports whether something changed. An object with a finalizer stays.
//
// It follows "Garbage Collection" in the Kubernetes documentation. An object stays if an owner reference has no UID, or
// a kind that is not served.
func (s *Store) CollectGarbage() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.state.revision
	for s.state.collected != s.state.revision {
		s.state.collected = s.state.revision
		for _, kind := range s.state.kinds() {
			for _, r := range s.state.tables[kind] {
				// What was done for others may have changed or removed it.
				if live := s.state.find(r.key()); live != nil {
					s.collect(live)
				}
			}
		}
		s.collectNamespaces()
		s.collectDefinitions()
	}
	return s.state.revision != start
}

// collect does what is due for one object. The caller holds the lock.
func (s *Store) collect(r *record) {
	terminating := r.object.GetDeletionTimestamp() != nil
	finalizers := r.object.GetFinalizers()
	switch {
	case terminating && slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		for _, dependent := range s.dependents(r) {
			s.change(dependent, func(obj client.Object) { dropOwners(obj, r.object.GetUID()) })
		}
		s.removeFinalizer(r, metav1.FinalizerOrphanDependents)
	case deletesDependents(r):
		blocked := slices.ContainsFunc(s.dependents(r), func(d *record) bool { return blocks(d, r) })
		if !blocked {
			s.removeFinalizer(r, metav1.FinalizerDeleteDependents)
		}
	case !terminating:
		s.collectDependent(r)
	}
}

// owners are the owner references of an object by what became of the owners.
type owners struct {
	// solid is how many are there. Dangling are those that are not; waiting those that are deleted in the foreground.
	solid             int
	dangling, waiting []types.UID
	// unknown is set if one cannot be looked up.
	unknown bool
}

// collectDependent deletes an object that has no owner any more, or drops the references to those that are gone. The
// caller holds the lock.
func (s *Store) collectDependent(r *record) {
	references := r.object.GetOwnerReferences()
	if len(references) == 0 {
		return
	}
	found := s.ownersOf(r, references)
	lost := slices.Concat(found.dangling, found.waiting)
	switch {
	case found.unknown || len(lost) == 0:
	case found.solid > 0:
		s.change(r, func(obj client.Object) { dropOwners(obj, lost...) })
	default:
		policy := s.policy(r, found)
		if policy == metav1.DeletePropagationForeground && slices.ContainsFunc(s.dependents(r), deletesDependents) {
			s.change(r, unblock) // Otherwise owners in a circle would wait for each other.
		}
		s.deleteGarbage(r, policy)
	}
}

// deletesDependents reports whether an object waits for its dependents to be deleted.
func deletesDependents(r *record) bool {
	return r.object.GetDeletionTimestamp() != nil &&
		slices.Contains(r.object.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// unblock lets no owner wait for an object.
func unblock(obj client.Object) {
	references := slices.Clone(obj.GetOwnerReferences())
	for i := range references {
		references[i].BlockOwnerDeletion = new(false)
	}
	obj.SetOwnerReferences(references)
}

// policy is how an object is deleted that has no owner any more.
func (s *Store) policy(r *record, found owners) metav1.DeletionPropagation {
	finalizers := r.object.GetFinalizers()
	switch {
	case len(found.waiting) > 0 && len(s.dependents(r)) > 0:
		return metav1.DeletePropagationForeground
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// ownersOf looks up the owners of an object, in its own namespace if they are in one.
func (s *Store) ownersOf(r *record, references []metav1.OwnerReference) owners {
	var found owners
	for _, reference := range references {
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
		served, err := s.resource(kind)
		if err != nil || reference.UID == "" || served.kind.Scope == registry.Namespaced && r.namespace == "" {
			found.unknown = true
			continue
		}
		owner := s.state.find(Key{kind.GroupKind(), served.namespace(r.namespace), reference.Name})
		if owner == nil && served.kind.Scope == registry.AnyScope {
			owner = s.state.find(Key{kind.GroupKind(), "", reference.Name})
		}
		switch {
		case owner == nil || owner.object.GetUID() != reference.UID:
			found.dangling = append(found.dangling, reference.UID)
		case deletesDependents(owner):
			found.waiting = append(found.waiting, reference.UID)
		default:
			found.solid++
		}
	}
	return found
}

// dependents returns the objects with an owner reference to an object.
func (s *Store) dependents(owner *record) []*record {
	var dependents []*record
	for _, kind := range s.state.kinds() {
		for _, r := range s.state.tables[kind] {
			if (owner.namespace == "" || r.namespace == owner.namespace) && refers(r, owner) != nil {
				dependents = append(dependents, r)
			}
		}
	}
	return dependents
}

// refers returns the reference of an object to an owner, nil if there is none.
func refers(r, owner *record) *metav1.OwnerReference {
	for _, reference := range r.object.GetOwnerReferences() {
		if reference.UID == owner.object.GetUID() {
			return &reference
		}
	}
	return nil
}

// blocks reports whether a dependent keeps its owner from being removed.
func blocks(r, owner *record) bool {
	reference := refers(r, owner)
	return reference != nil && ptr.Deref(reference.BlockOwnerDeletion, false)
}

func dropOwners(obj client.Object, uids ...types.UID) {
	kept := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return slices.Contains(uids, r.UID)
	})
	if len(kept) == 0 {
		kept = nil
	}
	obj.SetOwnerReferences(kept)
}

func (s *Store) removeFinalizer(r *record, finalizer string) {
	s.change(r, func(obj client.Object) {
		obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
			return f == finalizer
		}))
	})
}

// change changes an object as the control plane does. An object that a change would make invalid stays as it is. The
// caller holds the lock.
func (s *Store) change(r *record, change func(client.Object)) {
	served, err := s.resource(r.gvk)
	live := s.state.find(r.key())
	if err != nil || live == nil {
		return
	}
	next := live.object.DeepCopyObject().(client.Object)
	change(next)
	_, _ = s.updateRecord(served, live, next, write{}, nil)
}

// deleteGarbage deletes an object as the control plane does. The caller holds the lock.
func (s *Store) deleteGarbage(r *record, policy metav1.DeletionPropagation) {
	served, err := s.resource(r.gvk)
	live := s.state.find(r.key())
	if err != nil || live == nil {
		return
	}
	uid := r.object.GetUID()
	_ = s.deleteRecord(served, live, &metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	}, "")
}
