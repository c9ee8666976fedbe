// Package fieldmanager computes the managed fields of objects, and merges what is applied, as an API server does, see
// "Server-Side Apply" in the Kubernetes documentation: by k8s.io/apimachinery/pkg/util/managedfields.
//
// Managed fields are kept apart from their object, as [Fields]: most objects are never applied, and what nobody asks
// for is not computed. So an update costs less than a microsecond.
//
// Everything here is safe for concurrent use. No object that is passed in is changed, and none may be changed later by
// the caller: the managed fields of a write are computed from it when they are wanted. The same goes for [Write].Sent.
// Managed fields in a stored object are ignored.
package fieldmanager

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// BeforeFirstApply is the manager of the fields of an object that has no managed fields when something is applied to it
// for the first time. API servers use this name.
const BeforeFirstApply = "before-first-apply"

// Write says who writes, where and when.
type Write struct {
	// Manager is the field manager. Empty is "unknown".
	Manager string
	// Subresource is "", "status" or "scale".
	Subresource string
	// Time is kept in seconds.
	Time time.Time
	// Sent are the managed fields in an update request; nil if it has none. They take the place of those of the
	// object, and so hand fields to another manager. A list that is empty, or has one empty entry, resets them. They
	// are ignored if they are invalid, and for a subresource. The caller may not change them later.
	Sent []metav1.ManagedFieldsEntry
}

// Manager computes the managed fields of the objects of one version of one kind.
type Manager struct {
	schema  *mergeSchema
	reset   func(subresource string) map[fieldpath.APIVersion]*fieldpath.Set
	applies cache

	mu        sync.Mutex
	libraries map[string]*managedfields.FieldManager // by subresource
}

// New returns the manager of a kind. Converter returns its merge schema; it is called when a schema is needed for the
// first time, because it takes a while to parse one. Create returns an empty object of the Go type of the kind.
// Reset returns, by version, what a request to a subresource cannot write.
//
// The versions of a kind are taken to differ in nothing but their name. So entries that were written by way of another
// version are kept. An entry of another group is dropped by the next write.
func New(
	kind schema.GroupVersionKind, converter func() managedfields.TypeConverter, create func() client.Object,
	reset func(subresource string) map[fieldpath.APIVersion]*fieldpath.Set,
) *Manager {
	return &Manager{
		schema: newMergeSchema(kind, converter, create), reset: reset,
		libraries: map[string]*managedfields.FieldManager{},
	}
}

// Updated returns the managed fields of next, to which a write changed live, which has the given ones. For a create,
// live and fields are nil. Next is what is stored: it differs from live in nothing that this write may not change. An
// object with a UID and without managed fields has none until something is applied to it.
//
// They are computed when they are wanted. If next does not fit the schema they are those of live, as on an API server.
// An update that changes nothing, and was sent without managed fields, keeps them: it needs no call.
func (m *Manager) Updated(live, next client.Object, fields *Fields, w Write) *Fields {
	if fields == nil && w.Sent == nil && live != nil && live.GetUID() != "" {
		return nil
	}
	return &Fields{sync.OnceValue(func() []metav1.ManagedFieldsEntry {
		_, after, err := m.write(live, fields, w, func(
			library *managedfields.FieldManager, live runtime.Object, ahead int64,
		) (runtime.Object, error) {
			return library.Update(live, m.schema.with(next, later(w.Sent, ahead)), w.Manager)
		})
		if err != nil {
			return fields.Entries()
		}
		return after
	})}
}

// Applied returns the object after config was applied to live, which has the given managed fields, and its managed
// fields. Live and fields are nil if the object does not exist. Config has what was sent. What this
// request cannot write is in the object, but gets no manager. The object is neither completed nor validated, and shares
// no memory with others.
//
// A conflict with other managers is the error of an API server, of type StatusError.
func (m *Manager) Applied(
	live client.Object, fields *Fields, config client.Object, force bool, w Write,
) (client.Object, *Fields, error) {
	r := request{client.ObjectKeyFromObject(config), fields, w.Manager, w.Subresource, force, w.Time.Unix()}
	if obj, after, ok := m.applies.find(r, live, config); ok {
		return obj, after, nil
	}
	obj, entries, err := m.write(live, fields, w, func(
		library *managedfields.FieldManager, live runtime.Object, _ int64,
	) (runtime.Object, error) {
		return library.Apply(live, config, w.Manager, force)
	})
	if err != nil {
		return nil, nil, sorted(err)
	}
	after := known(entries)
	m.applies.add(r, live, config, obj, after)
	return obj, after, nil
}

// write returns the object that a call to the library returns, and its managed fields apart. The call gets the live
// object with its managed fields.
//
// The library reads the system clock. So the times of the managed fields are moved by what this clock is ahead of the
// time of the write, and moved back afterwards. If a second begins meanwhile, nobody knows which of the two the library
// has read, so it is called again.
func (m *Manager) write(
	live client.Object, fields *Fields, w Write,
	call func(library *managedfields.FieldManager, live runtime.Object, ahead int64) (runtime.Object, error),
) (client.Object, []metav1.ManagedFieldsEntry, error) {
	library, err := m.library(w.Subresource)
	if err != nil {
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		now := time.Now().Unix()
		ahead := now - w.Time.Unix()
		written, err := call(library, m.schema.with(live, later(fields.Entries(), ahead)), ahead)
		switch {
		case err != nil:
			return nil, nil, err
		case time.Now().Unix() != now && attempt < 10:
			continue
		}
		obj := written.(client.Object)
		entries := later(obj.GetManagedFields(), -ahead)
		obj.SetManagedFields(nil)
		return obj, entries, nil
	}
}

// library returns what the library has for a subresource.
func (m *Manager) library(subresource string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if library, ok := m.libraries[subresource]; ok {
		return library, nil
	}
	s, version := m.schema, m.schema.kind.GroupVersion()
	library, err := managedfields.NewDefaultFieldManager(
		s, s, s, s, s.kind, version, subresource, fieldpath.NewExcludeFilterSetMap(m.reset(subresource)))
	if err == nil {
		m.libraries[subresource] = library
	}
	return library, err
}

// sorted brings the causes of a conflict into the order of their managers: the library has them in any order.
func sorted(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		slices.SortStableFunc(status.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Compare(a.Message, b.Message)
		})
	}
	return err
}
