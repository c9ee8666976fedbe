// Package fieldmanager computes the managed fields of objects, and merges what is applied, as an API server does, see
// "Server-Side Apply" in the Kubernetes documentation. The results are those of
// k8s.io/apimachinery/pkg/util/managedfields, except that a manager named kubectl is one like all others: it does not
// take over the annotation of client-side apply. The merge itself is done by sigs.k8s.io/structured-merge-diff.
//
// Managed fields are kept apart from their object, as [Fields], for two reasons. Most objects are never applied, and
// what nobody asks for is not computed: an update costs less than a microsecond. And what was computed is not decoded
// again for the next write.
//
// Everything here is safe for concurrent use. No object that is passed in is changed, and none may be changed later by
// the caller: the managed fields of a write are computed from it when they are wanted. The same goes for [Write].Sent.
// Managed fields in a stored object are ignored.
package fieldmanager

import (
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// BeforeFirstApply is the manager of the fields of an object that has no managed fields when something is applied to it
// for the first time. API servers use this name.
const BeforeFirstApply = "before-first-apply"

// Write says who writes, where and when.
type Write struct {
	// Manager is the field manager. Empty is "unknown".
	Manager string
	// Subresource is "" or "status".
	Subresource string
	// HasStatus says that the status is a subresource. It matters for the first apply to an object without managed
	// fields.
	HasStatus bool
	// Time is kept in seconds.
	Time time.Time
	// Sent are the managed fields in an update request; nil if it has none. They take the place of those of the
	// object, and so hand fields to another manager. A list that is empty, or has one empty entry, resets them. They
	// are ignored if they are invalid, and for a subresource. The caller may not change them later.
	Sent []metav1.ManagedFieldsEntry
}

func (w Write) time() *metav1.Time { return &metav1.Time{Time: w.Time.UTC().Truncate(time.Second)} }

// Manager computes the managed fields of the objects of one version of one kind.
type Manager struct {
	version fieldpath.APIVersion
	schema  *mergeSchema
	updater *merge.Updater
	applies cache
}

// New returns the manager of a kind. Converter returns its merge schema; it is called when a schema is needed for the
// first time, because it takes a while to parse one. Create returns an empty object of the Go type of the kind.
//
// The versions of a kind are taken to differ in nothing but their name. So entries that were written by way of another
// version are kept. An entry of another group is dropped by the next write.
func New(
	kind schema.GroupVersionKind, converter func() managedfields.TypeConverter, create func() client.Object,
) *Manager {
	s := newMergeSchema(kind, converter, create)
	return &Manager{
		version: fieldpath.APIVersion(kind.GroupVersion().String()),
		schema:  s,
		updater: (&merge.UpdaterBuilder{Converter: s}).BuildUpdater(),
	}
}

// Updated returns the managed fields of next, to which a write changed live, which has the given ones. For a create,
// live and fields are nil. Next is what is stored: it differs from live in nothing that this write may not change. An
// object with a UID and without managed fields has none until something is applied to it.
//
// They are computed when they are wanted. If next does not fit the schema they are those of live, as on an API server.
// An update that changes nothing, and was sent without managed fields, keeps them: it needs no call.
func (m *Manager) Updated(live, next client.Object, fields *Fields, w Write) *Fields {
	if fields == nil && w.Sent == nil && untracked(live) {
		return nil
	}
	return lazy(func() managed {
		before := fields.before(w)
		if len(before.fields) == 0 && untracked(live) {
			return before
		}
		after, err := m.updated(live, next, before, w)
		if err != nil {
			return fields.value()
		}
		return after
	})
}

// untracked reports whether the fields of an object are left alone if it has no managed fields: it is not new.
func untracked(live client.Object) bool { return live != nil && live.GetUID() != "" }

// Applied returns the object after config was applied to live, which has the given managed fields, and its managed
// fields. Live and fields are nil if the object does not exist. Config has what was sent, without what this request may
// not write, such as the status if it is a subresource. The object is neither completed nor validated. It is live
// itself if no value changes; the fields are the same pointer if nothing changes at all. A new object shares no memory
// with others.
//
// A conflict with other managers is the error of an API server, of type StatusError.
func (m *Manager) Applied(
	live client.Object, fields *Fields, config client.Object, force bool, w Write,
) (client.Object, *Fields, error) {
	if kind := config.GetObjectKind().GroupVersionKind(); kind != m.schema.kind {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %v", kind))
	}
	if config.GetManagedFields() != nil {
		return nil, nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	owner := ownerOf(w, metav1.ManagedFieldsOperationApply, m.version)
	r := request{client.ObjectKeyFromObject(config), fields, owner, force, w.HasStatus, w.Time.Unix()}
	if obj, after, ok := m.applies.find(r, live, config); ok {
		return obj, after, nil
	}
	obj, after, err := m.applied(live, fields, config, force, w)
	if err == nil {
		m.applies.add(r, live, config, obj, after)
	}
	return obj, after, err
}

func (m *Manager) applied(
	live client.Object, fields *Fields, config client.Object, force bool, w Write,
) (client.Object, *Fields, error) {
	applied, err := m.schema.typed(config)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create typed patch object (%s): %w", m.schema.describe(config), err)
	}
	before, err := m.schema.stored(live)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create typed live object (%s): %w", m.schema.describe(live), err)
	}
	managers := fields.value()
	if len(managers.fields) == 0 && live != nil {
		if managers, err = m.beforeFirstApply(live, w); err != nil {
			return nil, nil, fmt.Errorf("failed to create manager for existing fields: %w", err)
		}
	}
	owner := ownerOf(w, metav1.ManagedFieldsOperationApply, m.version)
	merged, owned, err := m.merge(before, applied, managers.fields, owner, force)
	if err != nil {
		return nil, nil, asStatus(err)
	}
	strip(owned, owner)
	if merged == nil {
		return m.schema.orEmpty(live), fields.unless(managers.with(owned, owner, nil)), nil
	}
	result, err := m.schema.object(merged)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to convert the applied object (%s): %w", m.schema.describe(config), err)
	}
	return result, known(managers.with(owned, owner, w.time())), nil
}

// beforeFirstApply gives the fields of an object that has no managed fields to [BeforeFirstApply], but for those that
// the write to come may not touch.
func (m *Manager) beforeFirstApply(live client.Object, w Write) (managed, error) {
	w.Manager = BeforeFirstApply
	first, err := m.updated(nil, live, managed{}, w)
	if err != nil || !w.HasStatus {
		return first, err
	}
	filter := exceptStatus
	if w.Subresource == "status" {
		filter = statusAlone
	}
	for owner, owned := range first.fields {
		set := filter.Filter(owned.Set())
		if set.Empty() {
			return managed{}, nil
		}
		first.fields[owner] = fieldpath.NewVersionedSet(set, owned.APIVersion(), owned.Applied())
	}
	return first, nil
}

var (
	statusAlone  = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	exceptStatus = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
)

// merge merges what an owner applies. Merged is nil if no value changes.
//
// To find what the owner no longer applies takes half the time of an apply. Nothing is to be found if it still applies
// all that it owns, which is only known after a merge. So the first merge takes the owner for a new one.
func (m *Manager) merge(
	live, config *typed.TypedValue, managers fieldpath.ManagedFields, owner string, force bool,
) (merged *typed.TypedValue, owned fieldpath.ManagedFields, err error) {
	last, ok := managers[owner]
	if !ok {
		return m.updater.Apply(live, config, m.version, managers, owner, force)
	}
	others := maps.Clone(managers)
	delete(others, owner)
	merged, owned, err = m.updater.Apply(live, config, m.version, others, owner, force)
	if now, ok := owned[owner]; err == nil && ok && last.Set().Difference(now.Set()).Empty() {
		return merged, owned, nil
	}
	return m.updater.Apply(live, config, m.version, managers, owner, force)
}

// updated returns the managed fields after a write that changed live, nil for a create, to next.
func (m *Manager) updated(live, next client.Object, before managed, w Write) (managed, error) {
	from, err := m.schema.stored(live)
	if err != nil {
		return managed{}, err
	}
	to, err := m.schema.stored(next)
	if err != nil {
		return managed{}, err
	}
	// What this write takes is computed under the name of nobody, so that it shows whether it took something.
	const nobody = "current-operation"
	_, managers, err := m.updater.Update(from, to, m.version, before.fields, nobody)
	if err != nil {
		return managed{}, err
	}
	strip(managers, nobody)
	taken, ok := managers[nobody]
	if !ok {
		return before.with(managers, "", nil).capped(), nil
	}
	delete(managers, nobody)
	owner, set := ownerOf(w, metav1.ManagedFieldsOperationUpdate, m.version), taken.Set()
	if previous, ok := managers[owner]; ok {
		set = set.Union(previous.Set())
	}
	managers[owner] = fieldpath.NewVersionedSet(set, m.version, false)
	return before.with(managers, owner, w.time()).capped(), nil
}
