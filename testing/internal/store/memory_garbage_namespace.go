package store

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collectNamespaces deletes what is in terminating namespaces, and removes those that are empty. The caller holds the
// lock.
func (s *memory) collectNamespaces() {
	for _, ns := range s.state.tables[namespaceKind] {
		if ns.object.GetDeletionTimestamp() != nil && s.emptyNamespace(ns.name) {
			s.finalizeNamespace(ns)
		}
	}
}

// emptyNamespace deletes what is in a namespace. It reports whether nothing is left.
func (s *memory) emptyNamespace(namespace string) bool {
	left := 0
	for _, kind := range s.state.kinds() {
		for _, r := range s.state.tables[kind].in(namespace) {
			s.deleteGarbage(r, metav1.DeletePropagationBackground)
		}
		left += len(s.state.tables[kind].in(namespace))
	}
	return left == 0
}

// finalizeNamespace removes a terminating namespace that is empty, unless it has other finalizers than that of the
// control plane.
func (s *memory) finalizeNamespace(live *record) {
	next, ok := live.object.DeepCopyObject().(*corev1.Namespace)
	if !ok {
		return
	}
	next.Spec.Finalizers = slices.DeleteFunc(next.Spec.Finalizers, isKubernetes)
	switch {
	case ends(next, live.object):
		_ = s.commit(live, nil, "")
	case !equality.Semantic.DeepEqual(next, live.object):
		after := newRecord(live.gvk, next)
		after.fields, after.showFields = live.fields, live.showFields
		_ = s.commit(live, after, "")
	}
}
