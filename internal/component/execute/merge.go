package execute

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// merger makes what a manager has written otherwise than by applying it, and what certain others have, part of what it has
// applied: the API server then takes away what is not applied any more. That concerns
//
//   - entries of its own plain writes: a create, or an update;
//   - entries of its own in another version of the type, which the API server takes for another manager's;
//   - entries of reclaimed managers.
type merger struct {
	manager string
	// version is the API version that is applied.
	version string
	// reclaim are prefixes of managers.
	reclaim []string
	// body is what is applied.
	body map[string]any
	// kept are paths that are never taken away.
	kept []fieldpath.Path
	// ignored are paths of JSON pointers, which are left alone too.
	ignored [][]string
}

// finalizers are kept wherever they come from: the API server itself adds some to what is created, and one that goes too soon
// costs data, one that stays only time.
var finalizers = fieldpath.MakePathOrDie("metadata", "finalizers")

// settled are fields that the API server sets when an object is created, as others are defaulted, but does not set again if they
// are taken away: it refuses that, or the object means something else from then on. The managed fields do not tell them from what
// the creator wanted.
var settled = map[schema.GroupKind][]fieldpath.Path{
	{Kind: "Pod"}:                                 {fieldpath.MakePathOrDie("spec")},
	{Kind: "PersistentVolumeClaim"}:               {fieldpath.MakePathOrDie("spec")},
	{Group: "networking.k8s.io", Kind: "Ingress"}: {fieldpath.MakePathOrDie("spec", "ingressClassName")},
}

// merger returns the one for the application of body by the operation.
func (e *Executor) merger(op plan.Operation, object *manifest.Object, body *unstructured.Unstructured) *merger {
	m := &merger{
		manager: string(e.fieldManager()),
		version: body.GetAPIVersion(),
		body:    body.Object,
		kept:    append([]fieldpath.Path{finalizers}, settled[op.Key.GroupKind()]...),
	}
	if op.Override {
		m.reclaim = e.Reclaim
	}
	for _, pointer := range object.Settings.IgnoreFields {
		if path, ok := parsePointer(pointer); ok {
			m.ignored = append(m.ignored, path)
		}
	}
	return m
}

// merge returns the managed fields as they have to be before the body is applied, and whether they differ. They do only if there is
// something that would otherwise stay: what the body has is the manager's anyway.
func (m *merger) merge(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	absorbed, first, target := &fieldpath.Set{}, -1, -1
	var rest []metav1.ManagedFieldsEntry
	var written *metav1.Time
	for _, entry := range entries {
		fields, ok := fieldsOf(entry)
		switch {
		case !ok && m.isTarget(entry):
			return entries, false
		case !ok:
			// One that cannot be understood is left to whoever can.
		case m.isTarget(entry):
			target = len(rest)
		case m.absorbs(entry):
			if first < 0 {
				first, written = len(rest), entry.Time
			}
			absorbed = absorbed.Union(m.loose(fields))
			continue
		}
		rest = append(rest, entry)
	}
	if !m.strays(absorbed) {
		return entries, false
	}
	if target < 0 {
		target = first
		rest = slices.Insert(rest, target, metav1.ManagedFieldsEntry{
			Manager: m.manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: m.version, FieldsType: "FieldsV1",
			Time: written,
		})
	} else if fields, ok := fieldsOf(rest[target]); ok {
		absorbed = absorbed.Union(fields)
	}
	raw, err := absorbed.ToJSON()
	if err != nil {
		return entries, false
	}
	rest[target].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return rest, true
}

// isTarget tells whether the entry is what the manager has applied.
func (m *merger) isTarget(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == m.manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
		entry.APIVersion == m.version
}

// absorbs tells whether the entry is one to become part of the target, which it is not itself.
func (m *merger) absorbs(entry metav1.ManagedFieldsEntry) bool {
	if entry.Subresource != "" {
		return false
	}
	return entry.Manager == m.manager || slices.ContainsFunc(m.reclaim, func(prefix string) bool {
		return prefix != "" && strings.HasPrefix(entry.Manager, prefix)
	})
}

// loose returns fields without those that are kept or ignored.
func (m *merger) loose(fields *fieldpath.Set) *fieldpath.Set {
	loose := &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if !m.leaves(path) {
			loose.Insert(path.Copy())
		}
	})
	return loose
}

// leaves tells whether what is at path stays, even if it is not applied.
func (m *merger) leaves(path fieldpath.Path) bool {
	for _, kept := range m.kept {
		if len(path) >= len(kept) && path[:len(kept)].Equals(kept) {
			return true
		}
	}
	return slices.ContainsFunc(m.ignored, func(pointer []string) bool { return touches(pointer, path) })
}

// touches tells whether path is what pointer means, or above or below it. The index of a list matches every element.
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

// strays tells whether there are fields that the body does not have.
func (m *merger) strays(fields *fieldpath.Set) bool {
	strays := false
	// Not by All, which panics when a loop over it ends early.
	fields.Iterate(func(path fieldpath.Path) {
		strays = strays || !holds(m.body, path)
	})
	return strays
}

// holds tells whether there is something at path. In doubt there is not.
func holds(v any, path fieldpath.Path) bool {
	for _, element := range path {
		var ok bool
		if v, ok = at(v, element); !ok {
			return false
		}
	}
	return true
}

// at returns what an element of a path leads to.
func at(v any, element fieldpath.PathElement) (any, bool) {
	if element.FieldName != nil {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		child, ok := m[*element.FieldName]
		return child, ok
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	for i, candidate := range list {
		switch {
		case element.Key != nil && hasKey(candidate, *element.Key),
			element.Value != nil && value.Equals(*element.Value, value.NewValueInterface(candidate)),
			element.Index != nil && *element.Index == i:
			return candidate, true
		}
	}
	return nil, false
}

// hasKey tells whether candidate is the element of a list with that key. Of the defaults that a part of a key may have, it
// knows the protocol of ports.
func hasKey(candidate any, key value.FieldList) bool {
	m, ok := candidate.(map[string]any)
	if !ok {
		return false
	}
	for _, field := range key {
		part, ok := m[field.Name]
		if !ok && field.Name == "protocol" {
			part, ok = "TCP", true
		}
		if !ok || !value.Equals(field.Value, value.NewValueInterface(part)) {
			return false
		}
	}
	return true
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields, true
	}
	if entry.FieldsType != "FieldsV1" {
		return nil, false
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, false
	}
	return fields, true
}
