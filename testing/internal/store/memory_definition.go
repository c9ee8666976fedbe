package store

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// isDefinition reports whether a record is a definition.
func isDefinition(r *record) bool { return r != nil && r.gvk.GroupKind() == definitionKind }

// definition returns the definition that a record is, nil if it is none.
func (r *record) definition() *apiextensionsv1.CustomResourceDefinition {
	if r == nil {
		return nil
	}
	d, _ := r.object.(*apiextensionsv1.CustomResourceDefinition)
	return d
}

// acceptNames sets the status of a definition that nobody else sees yet. The caller holds the lock.
func (s *memory) acceptNames(d *apiextensionsv1.CustomResourceDefinition) {
	var others []*apiextensionsv1.CustomResourceDefinition
	for _, r := range s.state.tables[definitionKind] {
		if other := r.definition(); other != nil && other.Name != d.Name {
			others = append(others, other)
		}
	}
	registry.AcceptNames(d, others, s.now())
}

// define serves, or no longer serves, what the definition defines. The caller holds the lock.
func (s *memory) define(before, after *record) error {
	definitions := maps.Clone(s.state.definitions)
	if definitions == nil {
		definitions = map[schema.GroupKind]map[string]*resource{}
	}
	was, is := before.definition(), after.definition()
	if was != nil && registry.Established(was) {
		definitions[definedBy(was)] = nil
	}
	if is != nil && registry.Established(is) {
		kind := definedBy(is)
		for _, r := range definitions[kind] {
			return fmt.Errorf("CustomResourceDefinition %s has the kind already", r.definition.Name)
		}
		defined, err := registry.FromDefinition(is)
		if err != nil {
			return err
		}
		definitions[kind] = newResources(defined, is)
		if was != nil && !equality.Semantic.DeepEqual(was.Spec.Versions, is.Spec.Versions) {
			s.state.tables[kind] = s.state.tables[kind].asReadBy(definitions[kind])
		}
	}
	s.state.definitions = definitions
	return nil
}

// asReadBy returns the objects of a kind as they are read once its definition has changed.
func (t table) asReadBy(versions map[string]*resource) table {
	read := make(table, len(t))
	for i, r := range t {
		read[i] = r
		if served, ok := versions[r.gvk.Version]; ok {
			read[i] = served.read(r)
		}
	}
	return read
}

// read returns an object as it is read: without the fields that are unknown now, and with the defaults of now. It is
// stored as it was until it is written.
func (r *resource) read(live *record) *record {
	stored := live.object
	if live.outdated != nil {
		stored = live.outdated
	}
	u, ok := stored.(*unstructured.Unstructured)
	if !ok {
		return live
	}
	completed := u.DeepCopy()
	r.PrepareForUpdate(completed, u, "")
	read := newRecord(live.gvk, completed)
	read.fields, read.showFields = live.fields, live.showFields
	if !equality.Semantic.DeepEqual(completed, u) {
		read.outdated = stored
	}
	return read
}

// collectDefinitions deletes the objects of definitions that are being deleted, removes definitions that have none, and
// accepts names that are free now. The caller holds the lock.
func (s *memory) collectDefinitions() {
	for _, r := range s.state.tables[definitionKind] {
		switch d := r.definition(); {
		case d == nil:
		case d.DeletionTimestamp != nil:
			s.collectDefinition(r, d)
		case registry.NamesRefused(d):
			next := d.DeepCopy()
			s.acceptNames(next)
			if !equality.Semantic.DeepEqual(d, next) {
				after := newRecord(r.gvk, next)
				after.fields, after.showFields = r.fields, r.showFields
				_ = s.commit(r, after, "")
			}
		}
	}
}

// collectDefinition deletes the objects of a definition that is being deleted, and removes it if it has none.
func (s *memory) collectDefinition(r *record, d *apiextensionsv1.CustomResourceDefinition) {
	if !slices.Contains(d.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	kind := definedBy(d)
	// The objects are those of another definition if this one was never established.
	if registry.Established(d) {
		for _, instance := range s.state.tables[kind] {
			if instance.object.GetDeletionTimestamp() == nil {
				s.deleteGarbage(instance, metav1.DeletePropagationBackground)
			}
		}
		if len(s.state.tables[kind]) > 0 {
			return
		}
	}
	s.removeFinalizer(r, apiextensionsv1.CustomResourceCleanupFinalizer)
}
