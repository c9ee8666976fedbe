package execute

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/managedfields"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// migration makes fields that were written otherwise than by apply, and fields of reclaimed managers, part of what is
// applied. The API server then removes fields that are not applied any more.
type migration struct {
	managedfields.Migration
	// body is what is applied.
	body map[string]any
	// reclaim are prefixes of managers whose fields are taken.
	reclaim []string
	// kept are the tokens of JSON pointers to fields that are never taken away.
	kept [][]string
}

// finalizers are kept wherever they come from: the API server itself adds some to what is created, and one that goes
// too soon costs data, one that stays only time.
var finalizers = []string{"metadata", "finalizers"}

// assignedOnce are fields that the API server sets when an object is created, as others are defaulted, but does not set
// again if they are removed: it refuses that, or the object means something else from then on. The managed fields do
// not distinguish them from fields that the creator wanted.
var assignedOnce = map[schema.GroupKind][][]string{
	{Kind: "Pod"}:                                 {{"spec"}},
	{Kind: "PersistentVolumeClaim"}:               {{"spec"}},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {{"spec", "ingressClassName"}},
}

// migrationFor returns the migration for the application of body by the operation.
func (e *Executor) migrationFor(
	op plan.Operation, object *manifest.Object, body *unstructured.Unstructured,
) *migration {
	ignored := managedfields.Pointers(object.Settings.IgnoreFields)
	m := &migration{body: body.Object, kept: append(append(ignored, finalizers), assignedOnce[op.Key.GroupKind()]...)}
	m.Manager, m.APIVersion = string(e.fieldManager()), body.GetAPIVersion()
	if op.Override {
		m.reclaim = e.Reclaim
	}
	return m
}

// migrate returns the managed fields as they have to be before the body is applied, and whether they differ. They do
// only if there is something that would otherwise stay: what the body has is the manager's anyway.
func (m *migration) migrate(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	m.Others, m.Keep = m.reclaims, m.keeps
	migrated, fields := m.Migrate(entries)
	if !managedfields.Leftover(fields, m.body) {
		return entries, false
	}
	return migrated, true
}

func (m *migration) reclaims(entry metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(m.reclaim, func(prefix string) bool {
		return prefix != "" && strings.HasPrefix(entry.Manager, prefix)
	})
}

// keeps reports whether the field at path stays, even if it is not applied.
func (m *migration) keeps(path fieldpath.Path) bool {
	return slices.ContainsFunc(m.kept, func(pointer []string) bool { return touches(pointer, path) })
}

// touches reports whether path is what pointer means, or above or below it. The index of a list matches every element.
func touches(pointer []string, path fieldpath.Path) bool {
	for i := range min(len(pointer), len(path)) {
		if name := path[i].FieldName; name != nil {
			if *name != pointer[i] {
				return false
			}
		} else if _, err := strconv.Atoi(pointer[i]); err != nil {
			return false
		}
	}
	return true
}
