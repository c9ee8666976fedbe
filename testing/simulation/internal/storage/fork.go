package storage

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Fork returns a storage that begins with what s has, its history included. Neither sees what is written to the other.
// They share memory until then, so a fork costs less than a microsecond. The clock of the fork is now, or that of s if
// now is nil. Objects of a fork do not expire, Written is not called, and a fork need not be closed. It may be used in
// the bubble in which it was made, or outside of all if it was made there.
func (s *Storage) Fork(now func() time.Time) *Storage {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f := &Storage{options: s.options, ended: s.ended, names: s.names}
	f.options.Written = nil
	if now != nil {
		f.options.Now = now
	}
	s.endedShared, f.endedShared = true, true
	h := s.current.Load()
	next := h.successor()
	next.entries = h.entries.Clone()
	// Without room for more, the first write copies the changes: s may write to the room.
	next.changes = h.changes[:len(h.changes):len(h.changes)]
	f.current.Store(next)
	return f
}

// Entry returns what a key holds, nil if nothing.
func (s *Storage) Entry(key string) *Entry { return s.current.Load().get(key) }

// Entries returns what the keys with a prefix hold, in the order of the keys.
func (s *Storage) Entries(prefix string) []*Entry {
	h := s.current.Load()
	return h.list(h.revision, span{key: prefix, prefix: true}, "")
}

// Clock returns the clock of the storage, nil if that is the clock of the process or the bubble.
func (s *Storage) Clock() func() time.Time { return s.options.Now }

// Ended returns how many objects of a key were deleted.
func (s *Storage) Ended(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended[key]
}

// countEnd counts a deletion. The caller holds the mutex.
func (s *Storage) countEnd(key string) {
	if s.endedShared {
		s.ended, s.endedShared = maps.Clone(s.ended), false
	}
	if s.ended == nil {
		s.ended = map[string]int{}
	}
	s.ended[key]++
}

// Name returns the first name that name makes of a number and whose key holds nothing. Numbers begin after the one that
// was taken last. Only take takes one.
func (s *Storage) Name(take bool, name func(n int) (name, key string)) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	h := s.current.Load()
	for n := s.names + 1; ; n++ {
		name, key := name(n)
		if h.get(key) != nil {
			continue
		}
		if take {
			s.names = n
		}
		return name
	}
}

type storageKey struct{}

// With has requests with the returned context read and write s, if the resources have the decorator [Storage.ByContext].
func With(ctx context.Context, s *Storage) context.Context {
	return context.WithValue(ctx, storageKey{}, s)
}

// Of returns the storage that [With] has set, or otherwise.
func Of(ctx context.Context, otherwise *Storage) *Storage {
	if s, ok := ctx.Value(storageKey{}).(*Storage); ok {
		return s
	}
	return otherwise
}

// ByContext returns the decorator of resources that are stored in the storage of the context of each request, see
// [With], or in s if the context has none.
func (s *Storage) ByContext() generic.StorageDecorator {
	decorate := s.Decorator()
	return func(
		config *storagebackend.ConfigForResource, resourcePrefix string, cacheKey func(obj runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		resource, destroy, err := decorate(
			config, resourcePrefix, cacheKey, newFunc, newListFunc, attributes, trigger, indexers)
		if err != nil {
			return nil, nil, err
		}
		return chosen{resource.(*store)}, destroy, nil
	}
}

// chosen stores a resource in the storage of the context.
type chosen struct{ *store }

var _ storage.Interface = chosen{}

// of returns the store of a request. The end of the resource does not end watches of a fork: to wait for it would tie
// it to the bubble of the first watch.
func (c chosen) of(ctx context.Context) *store {
	kept := Of(ctx, nil)
	if kept == nil {
		return c.store
	}
	return &store{
		storage: kept, prefix: c.prefix, codec: c.codec, newFunc: c.newFunc, ended: context.Background(),
		lag: lagOf(ctx),
	}
}

// Create implements [storage.Interface].
func (c chosen) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return c.of(ctx).Create(ctx, key, obj, out, ttl)
}

// Delete implements [storage.Interface].
func (c chosen) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	return c.of(ctx).Delete(ctx, key, out, preconditions, validateDeletion, cached, opts)
}

// Watch implements [storage.Interface].
func (c chosen) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return c.of(ctx).Watch(ctx, key, opts)
}

// Get implements [storage.Interface].
func (c chosen) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return c.of(ctx).Get(ctx, key, opts, out)
}

// GetList implements [storage.Interface].
func (c chosen) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return c.of(ctx).GetList(ctx, key, opts, list)
}

// GuaranteedUpdate implements [storage.Interface].
func (c chosen) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	return c.of(ctx).GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, update, cached)
}

// GetCurrentResourceVersion implements [storage.Interface].
func (c chosen) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return c.of(ctx).GetCurrentResourceVersion(ctx)
}

// RequestWatchProgress implements [storage.Interface].
func (c chosen) RequestWatchProgress(ctx context.Context) error {
	return c.of(ctx).RequestWatchProgress(ctx)
}

// Stats implements [storage.Interface].
func (c chosen) Stats(ctx context.Context) (storage.Stats, error) { return c.of(ctx).Stats(ctx) }
