package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// stamps gives the objects of worlds their UIDs and times, so that the same requests have the same answers in each
// world. A UID is a digest of kind, namespace and name, and of how many objects of the name were deleted. Times are
// those of the clock of the storage, if it has one. Names are given by an admission plug-in, see [worldNames].
type stamps struct{ base *storage.Storage }

var _ identifier = stamps{}

// GenerateName implements [names.NameGenerator]. It is for objects that come past the admission plug-ins.
func (stamps) GenerateName(prefix string) string {
	return names.SimpleNameGenerator.GenerateName(prefix)
}

// begin implements [identifier].
func (s stamps) begin(ctx context.Context, key string, obj client.Object, _ bool) {
	kept := storage.Of(ctx, s.base)
	obj.SetUID(uidOf(kindOf(obj), obj, endedIn(kept, key)))
	obj.SetCreationTimestamp(timeIn(kept))
}

// endedIn returns how many objects of a key were deleted. For a dry run it returns -1, so that no object has its UID.
func endedIn(kept *storage.Storage, key string) int {
	if kept.IsDryRun() {
		return -1
	}
	return kept.Ended(key)
}

// uidOf returns the UID of an object of a kind of whose name several were deleted.
func uidOf(kind schema.GroupKind, obj metav1.Object, ended int) types.UID {
	key := registry.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	return registry.UID(key, ended)
}

// kindOf returns the kind of an object in the server.
func kindOf(obj runtime.Object) schema.GroupKind {
	if u, ok := obj.(runtime.Unstructured); ok {
		kind := u.GetObjectKind().GroupVersionKind().GroupKind()
		kind.Group = strings.TrimPrefix(kind.Group, noGroup)
		return kind
	}
	for _, s := range []*runtime.Scheme{scheme(), apiextensions.Scheme} {
		if kinds, _, err := s.ObjectKinds(obj); err == nil {
			return kinds[0].GroupKind()
		}
	}
	return schema.GroupKind{}
}

// decorate implements [identifier].
func (s stamps) decorate(decorator generic.StorageDecorator) generic.StorageDecorator {
	return wrapped(decorator, func(i apistorage.Interface) apistorage.Interface { return stamped{i, s.base} })
}

// stamped is a storage whose objects are stamped.
type stamped struct {
	apistorage.Interface
	base *storage.Storage
}

// Create implements [apistorage.Interface].
func (s stamped) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.stampNew(ctx, key, obj); err != nil {
		return err
	}
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil {
		generatedIn(ctx).take()
	}
	return err
}

// GuaranteedUpdate implements [apistorage.Interface]. It creates an object if there is none and the caller wants one.
func (s stamped) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object,
) error {
	kept := storage.Of(ctx, s.base)
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(live runtime.Object, known apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
			before, given := timesOf(live, kept), completeGiven(kept.Entry(key), live, known)
			next, ttl, err := update(live, known)
			if err != nil {
				return next, ttl, err
			}
			given.restore(next)
			if known.ResourceVersion == 0 {
				return next, ttl, s.stampNew(ctx, key, next)
			}
			return next, ttl, before.stamp(next, kept)
		}, cached)
}

// stampNew stamps an object that is about to be stored for the first time.
func (s stamped) stampNew(ctx context.Context, key string, obj runtime.Object) error {
	kept := storage.Of(ctx, s.base)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	accessor.SetUID(uidOf(kindOf(obj), accessor, endedIn(kept, key)))
	accessor.SetCreationTimestamp(timeIn(kept))
	return times{}.stamp(obj, kept)
}

// times are those of an object that a server sets by its clock.
type times struct {
	// deletion is nil if the object is not being deleted, and grace is its period then.
	deletion *metav1.Time
	grace    time.Duration
	managed  map[string]metav1.Time
	// ahead is how far the clock of the process is ahead of that of the storage.
	ahead time.Duration
}

// timesOf returns those of an object, and has its fields be managed since then by the clock of the process: the library
// joins the oldest entries if there are many. It returns none if the storage has no clock of its own.
func timesOf(obj runtime.Object, kept *storage.Storage) times {
	accessor, err := meta.Accessor(obj)
	if kept.Clock() == nil || err != nil {
		return times{}
	}
	t := times{
		deletion: accessor.GetDeletionTimestamp(), grace: graceOf(accessor), managed: map[string]metav1.Time{},
	}
	t.ahead = time.Now().Truncate(time.Second).Sub(timeIn(kept).Time)
	fields := accessor.GetManagedFields()
	for i, entry := range fields {
		if entry.Time != nil {
			t.managed[managerOf(entry)] = *entry.Time
			at := metav1.NewTime(entry.Time.Add(t.ahead))
			fields[i].Time = &at
		}
	}
	accessor.SetManagedFields(fields)
	return t
}

// since returns since when the fields of an entry are managed.
func (t times) since(entry metav1.ManagedFieldsEntry, now metav1.Time) metav1.Time {
	before, ok := t.managed[managerOf(entry)]
	switch at := entry.Time.Add(-t.ahead); {
	case ok && (before.Equal(entry.Time) || before.Time.Equal(at)):
		return before
	case t.managed != nil && at.Before(now.Time):
		return metav1.NewTime(at)
	}
	return now
}

func managerOf(entry metav1.ManagedFieldsEntry) string {
	return fmt.Sprintf("%s %s %s %s", entry.Operation, entry.APIVersion, entry.Subresource, entry.Manager)
}

// stamp sets what the libraries have taken from the clock of the process since t was read.
func (t times) stamp(obj runtime.Object, kept *storage.Storage) error {
	if kept.Clock() == nil {
		return nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	now := timeIn(kept)
	if accessor.GetDeletionTimestamp() != nil {
		at := metav1.NewTime(t.ends(now.Time, *accessor.GetDeletionTimestamp(), graceOf(accessor)))
		accessor.SetDeletionTimestamp(&at)
	}
	fields := accessor.GetManagedFields()
	for i, entry := range fields {
		if entry.Time != nil {
			at := t.since(entry, now)
			fields[i].Time = &at
		}
	}
	if len(fields) > 0 {
		slices.SortFunc(fields, compareManagers)
		accessor.SetManagedFields(fields)
	}
	return nil
}

func graceOf(obj metav1.Object) time.Duration {
	return time.Duration(ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 0)) * time.Second
}

// ends returns when the deletion of an object ends, which the libraries have set with a grace period. They reckon from
// the end that there was, or take the time of the process if that is before it.
func (t times) ends(now time.Time, set metav1.Time, grace time.Duration) time.Time {
	if t.deletion == nil {
		return now.Add(grace)
	}
	if reckoned := t.deletion.Add(grace - t.grace); set.Time.Equal(reckoned) {
		return reckoned
	}
	if t.deletion.Time.Before(now) {
		return t.deletion.Time
	}
	return now
}

// compareManagers has the managers of fields in the order of the libraries. They would put others in this order with
// the next update, even if that changes nothing.
func compareManagers(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return cmp.Or(
		cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Subresource, b.Subresource))
}
