package store

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// memoryWrite says who writes, and how.
type memoryWrite struct {
	// manager is empty for the control plane.
	manager     string
	subresource string
	dryRun      bool
	// strict refuses unknown fields.
	strict bool
	// refuseDropped refuses what is dropped, see [ClientOptions].
	refuseDropped bool
}

// part is the subresource as a [registry.Strategy] knows it. A scale is a part of the object itself.
func (w memoryWrite) part() string {
	if w.subresource == scaleSubresource {
		return ""
	}
	return w.subresource
}

// create stores a new object.
func (s *memory) create(gvk schema.GroupVersionKind, obj client.Object, w memoryWrite) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	next, sent, err := r.decode(obj, w.strict)
	if err != nil {
		return nil, err
	}
	return s.createRecord(r, next, w, sent, nil)
}

// createRecord stores a new object of the Go type of its kind. It takes over the object. Sent are the managed fields
// that came with it, applied those after an apply; nil if it is none. The caller holds the lock.
func (s *memory) createRecord(
	r *resource, next client.Object, w memoryWrite, sent []metav1.ManagedFieldsEntry, applied *fieldmanager.Fields,
) (*record, error) {
	if r.definition != nil && r.definition.DeletionTimestamp != nil {
		return nil, apierrors.NewForbidden(r.resource, next.GetName(), errTerminating)
	}
	if err := s.checkNamespace(r, next.GetNamespace(), next.GetName()); err != nil {
		return nil, err
	}
	id, generated := s.newIdentity(r, next, w.dryRun)
	managed, asked := r.managed(next), nodePorts(next)
	if err := decideCreate(r, next, id); err != nil {
		return nil, err
	}
	if err := s.claimNodePorts(r, next, asked); err != nil {
		return nil, err
	}
	if s.state.find(newKey(r.gvk.GroupKind(), next.GetNamespace(), next.GetName())) != nil {
		return nil, apierrors.NewAlreadyExists(r.resource, next.GetName())
	}
	fields := applied
	if applied == nil {
		fields = r.fields.Updated(nil, managed(), nil, s.fieldWrite(w, sent))
	}
	after, err := s.newStoredRecord(r, next, fields, s.options.ManagedFields || sent != nil || applied != nil)
	if err != nil {
		return nil, err
	}
	if w.dryRun {
		return after, nil
	}
	s.state.generated = generated
	return after, s.commit(nil, after, w.manager)
}

// update replaces an object.
func (s *memory) update(gvk schema.GroupVersionKind, obj client.Object, w memoryWrite) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.resource(gvk)
	if err != nil {
		return nil, err
	}
	next, sent, err := r.decode(obj, w.strict)
	if err != nil {
		return nil, err
	}
	live, err := s.writable(r, next.GetNamespace(), next.GetName(), w.subresource)
	if err != nil {
		return nil, err
	}
	if live == nil && (!r.kind.AllowCreateOnUpdate || w.subresource != "") {
		return nil, apierrors.NewNotFound(r.resource, next.GetName())
	}
	if err := checkUID(r, live, next); err != nil {
		return nil, err
	}
	if live != nil {
		return s.updateRecord(r, live, next, w, sent)
	}
	next.SetResourceVersion("")
	return s.createRecord(r, next, w, sent, nil)
}

// writable returns the record that a request names, nil if there is none. It refuses a request to a subresource that
// the kind lacks, and one without a name or namespace.
func (s *memory) writable(r *resource, namespace, name, subresource string) (*record, error) {
	if err := r.checkName(namespace, name); err != nil {
		return nil, err
	}
	if err := r.checkSubresource(subresource, name); err != nil {
		return nil, err
	}
	return s.state.find(newKey(r.gvk.GroupKind(), r.namespace(namespace), name)), nil
}

// updateRecord puts next in the place of live. Next is of the Go type of its kind. It takes over the object. The caller
// holds the lock.
func (s *memory) updateRecord(
	r *resource, live *record, next client.Object, w memoryWrite, sent []metav1.ManagedFieldsEntry,
) (*record, error) {
	before, err := live.as(form{r.goType, r.gvk.GroupVersion()})
	if err != nil {
		return nil, err
	}
	drops := w.refuseDropped && w.subresource == "" && r.HasStatus() && !sameStatus(before, next)
	managed, asked := r.managed(next), nodePorts(next)
	v, err := live.decideUpdate(r, before, next, w.part())
	if err == nil && v == stored {
		err = s.claimNodePorts(r, next, asked)
	}
	switch {
	case err != nil:
		return nil, err
	case v == unchanged && drops:
		return nil, errDropped(live.key())
	case v == unchanged && sent == nil:
		return live, nil
	}
	fields := r.fields.Updated(before, managed(), live.fields, s.fieldWrite(w, sent))
	if v == unchanged && fields.SameOwners(live.fields) {
		return live, nil
	}
	after, err := s.newStoredRecord(r, next, fields, sent != nil || live.showFields)
	if err != nil {
		return nil, err
	}
	return after, s.commitUpdate(live, after, v, w)
}

// managed returns a function for an object that is about to be completed. It returns the completed object as field
// managers see it: without what is filled in.
func (r *resource) managed(next client.Object) func() client.Object {
	takeBack := registry.FilledIn(r.gvk.GroupKind())
	if takeBack == nil {
		return func() client.Object { return next }
	}
	sent := next.DeepCopyObject().(client.Object)
	return func() client.Object {
		seen := next.DeepCopyObject().(client.Object)
		takeBack(seen, sent)
		return seen
	}
}

// decideUpdate is [decideUpdate] for an object of the record. With any update is written what is not stored as it is
// read.
func (r *record) decideUpdate(served *resource, before, next client.Object, subresource string) (verdict, error) {
	v, err := decideUpdate(served, before, next, subresource)
	if err == nil && v == unchanged && r.outdated != nil {
		v = stored
	}
	return v, err
}

// commitUpdate commits what was decided about an update, unless it is a dry run. The caller holds the lock.
func (s *memory) commitUpdate(live, after *record, v verdict, w memoryWrite) error {
	switch {
	case w.dryRun:
		return nil
	case v == removed:
		after = nil
	}
	return s.commit(live, after, w.manager)
}

// newStoredRecord returns the record of an object in the form in which its kind is stored.
func (s *memory) newStoredRecord(
	r *resource, obj client.Object, fields *fieldmanager.Fields, showFields bool,
) (*record, error) {
	if r.gvk != r.stored {
		target, err := s.resource(r.stored)
		if err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(r.gvk)
		if obj, err = convert(obj, form{target.goType, r.stored.GroupVersion()}); err != nil {
			return nil, err
		}
	}
	if err := checkStored(obj); err != nil {
		return nil, err
	}
	stored := newRecord(r.stored, obj)
	stored.fields, stored.showFields = fields, showFields
	return stored, nil
}

// commit replaces a record by another; one of them may be nil. The caller holds the lock.
func (s *memory) commit(before, after *record, manager string) error {
	if isDefinition(before) || isDefinition(after) {
		if d := after.definition(); d != nil {
			s.acceptNames(d)
		}
		if err := s.define(before, after); err != nil {
			return err
		}
	}
	s.state.revision++
	if after != nil {
		after.object.SetResourceVersion(strconv.FormatInt(s.state.revision, 10))
		s.state.put(after)
	} else {
		s.state.remove(before)
	}
	s.state.journal = append(s.state.journal, change{s.state.revision, before, after, manager})
	for w := range s.watchers {
		w.wakeUp()
	}
	return nil
}

func (s *memory) fieldWrite(w memoryWrite, sent []metav1.ManagedFieldsEntry) fieldmanager.Write {
	if w.manager == "" {
		w.manager = controlPlane
	}
	return fieldmanager.Write{Manager: w.manager, Subresource: w.subresource, Time: s.options.Now(), Sent: sent}
}
