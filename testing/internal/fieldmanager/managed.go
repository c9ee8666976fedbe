package fieldmanager

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// managed has the managed fields of an object by their owner, see [ownerOf]. Its maps are never changed.
type managed struct {
	fields fieldpath.ManagedFields
	times  map[string]*metav1.Time
}

const fieldsV1 = "FieldsV1"

// maxUpdateManagers is how many entries an API server keeps of managers that update. The oldest are joined.
const maxUpdateManagers = 10

// oldUpdates is the manager of entries that were joined. API servers use this name.
const oldUpdates = "ancient-changes"

// stripped are fields that nobody owns.
var stripped = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// strip removes from an owner what nobody owns.
func strip(managers fieldpath.ManagedFields, owner string) {
	owned, ok := managers[owner]
	if !ok {
		return
	}
	set := owned.Set().Difference(stripped)
	if set.Empty() {
		delete(managers, owner)
		return
	}
	managers[owner] = fieldpath.NewVersionedSet(set, owned.APIVersion(), owned.Applied())
}

// ownerOf returns the owner of the fields of a write: an entry with what tells entries apart, as JSON. Managers that
// apply have one entry, whatever the version.
func ownerOf(w Write, operation metav1.ManagedFieldsOperationType, version fieldpath.APIVersion) string {
	return ownerOfEntry(metav1.ManagedFieldsEntry{
		Manager:     cmp.Or(w.Manager, "unknown"),
		Operation:   operation,
		Subresource: w.Subresource,
		APIVersion:  string(version),
	})
}

func ownerOfEntry(entry metav1.ManagedFieldsEntry) string {
	entry.FieldsType, entry.FieldsV1, entry.Time = "", nil, nil
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		entry.APIVersion = ""
	}
	raw, _ := json.Marshal(entry) // It has strings only.
	return string(raw)
}

// with returns the managed fields after a write: the given fields, with the times of m. Written is the new time of the
// owner; nil leaves it.
func (m managed) with(fields fieldpath.ManagedFields, owner string, written *metav1.Time) managed {
	times := make(map[string]*metav1.Time, len(fields))
	for other := range fields {
		if t, ok := m.times[other]; ok {
			times[other] = t
		}
	}
	if written != nil {
		times[owner] = written
	}
	return managed{fields, times}
}

func (m managed) seconds(owner string) int64 {
	if t := m.times[owner]; t != nil {
		return t.Unix()
	}
	return 0
}

// capped joins the oldest entries of updates of the same version while there are too many.
func (m managed) capped() managed {
	var updaters []string
	for owner, owned := range m.fields {
		if !owned.Applied() {
			updaters = append(updaters, owner)
		}
	}
	excess := len(updaters) - maxUpdateManagers
	if excess <= 0 {
		return m
	}
	slices.SortFunc(updaters, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.seconds(a), m.seconds(b)), cmp.Compare(a, b))
	})
	fields, times := maps.Clone(m.fields), maps.Clone(m.times)
	oldest := map[fieldpath.APIVersion]string{}
	for _, owner := range updaters {
		if excess <= 0 {
			break
		}
		owned := fields[owner]
		version := owned.APIVersion()
		first, ok := oldest[version]
		if !ok {
			oldest[version] = owner
			continue
		}
		joined := ownerOf(Write{Manager: oldUpdates}, metav1.ManagedFieldsOperationUpdate, version)
		if _, ok := fields[joined]; !ok {
			fields[joined] = fields[first]
			delete(fields, first)
		}
		fields[joined] = fieldpath.NewVersionedSet(owned.Set().Union(fields[joined].Set()), version, false)
		delete(fields, owner)
		times[joined] = times[owner]
		excess--
	}
	return managed{fields, times}
}

// decode returns what entries say.
func decode(entries []metav1.ManagedFieldsEntry) (managed, error) {
	m := managed{make(fieldpath.ManagedFields, len(entries)), make(map[string]*metav1.Time, len(entries))}
	for i, entry := range entries {
		applied := entry.Operation == metav1.ManagedFieldsOperationApply
		switch {
		case !applied && entry.Operation != metav1.ManagedFieldsOperationUpdate:
			return managed{}, fmt.Errorf("managed fields entry %d: operation must be `Apply` or `Update`", i)
		case entry.APIVersion == "":
			return managed{}, fmt.Errorf("managed fields entry %d: apiVersion must not be empty", i)
		case entry.FieldsType != fieldsV1:
			return managed{}, fmt.Errorf("managed fields entry %d: invalid fieldsType %q", i, entry.FieldsType)
		}
		set := fieldpath.NewSet()
		if entry.FieldsV1 != nil {
			if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
				return managed{}, fmt.Errorf("managed fields entry %d: %w", i, err)
			}
		}
		owner := ownerOfEntry(entry)
		m.fields[owner] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(entry.APIVersion), applied)
		m.times[owner] = entry.Time
	}
	return m, nil
}

// encode returns the entries in the order of an API server.
func (m managed) encode() []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for owner, owned := range m.fields {
		var entry metav1.ManagedFieldsEntry
		_ = json.Unmarshal([]byte(owner), &entry) // See ownerOfEntry.
		raw, _ := owned.Set().ToJSON()            // It fails for a writer that fails only.
		entry.APIVersion, entry.Time = string(owned.APIVersion()), m.times[owner]
		entry.FieldsType, entry.FieldsV1 = fieldsV1, metav1.NewFieldsV1(string(raw))
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(
			cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(seconds(a), seconds(b)),
			cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion),
			cmp.Compare(a.Subresource, b.Subresource),
		)
	})
	return entries
}

func seconds(entry metav1.ManagedFieldsEntry) int64 {
	if entry.Time == nil {
		return 0
	}
	return entry.Time.Unix()
}
