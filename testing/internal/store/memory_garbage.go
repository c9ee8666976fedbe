package store

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/garbage"
	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// CollectGarbage does what the controllers of the control plane do in the end: it deletes dependents whose owners are
// gone, ends foreground and orphan deletions, empties and removes terminating namespaces, and deletes the instances of
// definitions that are being deleted. It reports whether something changed. An object with a finalizer stays.
//
// It follows "Garbage Collection" in the Kubernetes documentation. An object stays if an owner reference has no UID, or
// a kind that is not served.
func (s *memory) CollectGarbage() (changed bool) {
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
func (s *memory) collect(r *record) {
	todo := garbage.Decide(r.object,
		func(reference metav1.OwnerReference) garbage.State { return s.ownerState(r, reference) },
		func() []metav1.Object { return objectsOf(s.dependents(r)) })
	if todo.Orphan {
		for _, dependent := range s.dependents(r) {
			s.change(dependent, func(obj client.Object) { garbage.DropOwners(obj, r.object.GetUID()) })
		}
	}
	if todo.RemoveFinalizer != "" {
		s.removeFinalizer(r, todo.RemoveFinalizer)
	}
	if len(todo.DropOwners) > 0 {
		s.change(r, func(obj client.Object) { garbage.DropOwners(obj, todo.DropOwners...) })
	}
	if todo.Unblock {
		s.change(r, func(obj client.Object) { garbage.Unblock(obj) })
	}
	if todo.Delete != "" {
		s.deleteGarbage(r, todo.Delete)
	}
}

func objectsOf(records []*record) []metav1.Object {
	objects := make([]metav1.Object, len(records))
	for i, r := range records {
		objects[i] = r.object
	}
	return objects
}

// ownerState looks up an owner of an object, in its own namespace if the owner is in one.
func (s *memory) ownerState(r *record, reference metav1.OwnerReference) garbage.State {
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	served, err := s.resource(kind)
	if err != nil || served.kind.Scope == registry.Namespaced && r.namespace == "" {
		return garbage.Unknown
	}
	owner := s.state.find(newKey(kind.GroupKind(), served.namespace(r.namespace), reference.Name))
	if owner == nil && served.kind.Scope == registry.AnyScope {
		owner = s.state.find(newKey(kind.GroupKind(), "", reference.Name))
	}
	switch {
	case owner == nil || owner.object.GetUID() != reference.UID:
		return garbage.Gone
	case garbage.DeletesDependents(owner.object):
		return garbage.Waiting
	}
	return garbage.Solid
}

// dependents returns the objects with an owner reference to an object.
func (s *memory) dependents(owner *record) []*record {
	var dependents []*record
	for _, kind := range s.state.kinds() {
		for _, r := range s.state.tables[kind] {
			if (owner.namespace == "" || r.namespace == owner.namespace) && recordRefers(r, owner) {
				dependents = append(dependents, r)
			}
		}
	}
	return dependents
}

// recordRefers reports whether an object has a reference to an owner.
func recordRefers(r, owner *record) bool {
	return slices.ContainsFunc(r.object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		return reference.UID == owner.object.GetUID()
	})
}

func (s *memory) removeFinalizer(r *record, finalizer string) {
	s.change(r, func(obj client.Object) { garbage.RemoveFinalizer(obj, finalizer) })
}

// change changes an object as the control plane does. An object that a change would make invalid stays as it is. The
// caller holds the lock.
func (s *memory) change(r *record, change func(client.Object)) {
	served, err := s.resource(r.gvk)
	live := s.state.find(r.key())
	if err != nil || live == nil {
		return
	}
	next := live.object.DeepCopyObject().(client.Object)
	change(next)
	_, _ = s.updateRecord(served, live, next, memoryWrite{}, nil)
}

// deleteGarbage deletes an object as the control plane does. The caller holds the lock.
func (s *memory) deleteGarbage(r *record, policy metav1.DeletionPropagation) {
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
