package storage

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
)

// Resource says how the objects of one resource are stored.
type Resource struct {
	// Prefix is what the keys of all objects of the resource begin with, such as "/configmaps". It begins with a slash.
	Prefix string
	// Codec encodes objects for storage.
	Codec runtime.Codec
	// New returns an empty object. It is needed for bookmarks.
	New func() runtime.Object
	// Transformer transforms encoded objects, for example to encrypt them. Nil stores them as they are.
	Transformer value.Transformer
}

// For returns the part of the storage that holds one resource. It may be called several times for the same resource,
// as each server does that uses the storage.
func (s *Storage) For(resource Resource) storage.Interface { return s.newStore(resource) }

func (s *Storage) newStore(resource Resource) *store {
	return &store{
		ended:   context.Background(),
		storage: s,
		prefix:  resource.Prefix,
		codec:   &codec{newFunc: resource.New, objects: resource.Codec, transformer: resource.Transformer},
		newFunc: resource.New,
	}
}

// store implements [storage.Interface] for one resource.
type store struct {
	storage *Storage
	// byContext is whether the context of a request may choose another storage.
	byContext bool
	// forked is whether that was done.
	forked  bool
	prefix  string
	codec   *codec
	newFunc func() runtime.Object
	// ended is done when the resource is not served any more.
	ended context.Context
	// lag is nil if reads see everything.
	lag *Lag
	// sizes is whether Stats reports the size of objects.
	sizes atomic.Bool
}

// Versioner implements [storage.Interface].
func (s *store) Versioner() storage.Versioner { return versioner }

// ReadinessCheck implements [storage.Interface].
func (s *store) ReadinessCheck() error { return nil }

// CompactRevision implements [storage.Interface].
func (s *store) CompactRevision() int64 { return s.storage.current.Load().compacted }

// GetCurrentResourceVersion implements [storage.Interface].
func (s *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return uint64(s.in(ctx).storage.Revision()), ctx.Err()
}

// RequestWatchProgress implements [storage.Interface]. It concerns the watches of all resources.
func (s *store) RequestWatchProgress(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.in(ctx).storage.requestProgress()
	return nil
}

// Stats implements [storage.Interface]. Sizes are exact, and 0 unless they were enabled.
func (s *store) Stats(ctx context.Context) (storage.Stats, error) {
	prefix, err := storage.PrepareKey(s.prefix, s.prefix, true)
	if err != nil {
		return storage.Stats{}, err
	}
	h := s.in(ctx).storage.current.Load()
	entries := h.list(h.revision, span{key: prefix, prefix: true}, "")
	stats := storage.Stats{ObjectCount: int64(len(entries))}
	if s.sizes.Load() && len(entries) > 0 {
		for _, e := range entries {
			stats.EstimatedAverageObjectSizeBytes += int64(len(e.Value))
		}
		stats.EstimatedAverageObjectSizeBytes /= stats.ObjectCount
	}
	return stats, ctx.Err()
}

// EnableResourceSizeEstimation implements [storage.Interface]. The keys are not asked for: the storage knows them.
func (s *store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("a function that returns the keys is needed")
	}
	if s.sizes.Swap(true) {
		return errors.New("the estimation of sizes is already enabled")
	}
	return nil
}
