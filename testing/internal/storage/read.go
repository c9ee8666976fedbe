package storage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Get implements [storage.Interface].
func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h := s.storage.current.Load()
	if err := notOlderThan(opts.ResourceVersion, h); err != nil {
		return err
	}
	if e := s.get(h, key); e != nil {
		return s.codec.object(ctx, e, out)
	}
	if opts.IgnoreNotFound {
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// GetList implements [storage.Interface].
func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := newItems(listObj, s.newFunc)
	if err != nil {
		return err
	}
	revision, start, err := storage.ValidateListOptions(key, versioner, opts)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h := s.storage.current.Load()
	revision, err = s.readAt(h, revision, opts, start, key)
	if err != nil {
		return err
	}
	entries := s.list(h, revision, span{key: key, prefix: opts.Recursive}, start)
	read, err := s.fill(ctx, items, entries, opts.Predicate)
	if err != nil {
		return err
	}
	var last string
	if read > 0 {
		last = entries[read-1].Key
	}
	more := read < len(entries)
	token, remaining, err := storage.PrepareContinueToken(last, key, revision, int64(len(entries)), more, opts)
	if err != nil {
		return err
	}
	return versioner.UpdateList(listObj, uint64(revision), token, remaining)
}

// notOlderThan returns an error if a resource version is malformed or later than a history.
func notOlderThan(resourceVersion string, h *history) error {
	revision, err := versioner.ParseResourceVersion(resourceVersion)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if revision > uint64(h.revision) {
		return storage.NewTooLargeResourceVersionError(revision, uint64(h.revision), 0)
	}
	return nil
}

// fill appends the objects that match until their number reaches the limit, and returns how many entries it read.
func (s *store) fill(
	ctx context.Context, to items, entries []*Entry, predicate storage.SelectionPredicate,
) (int, error) {
	if predicate.Empty() && predicate.Limit <= 0 {
		to.slice.Grow(len(entries))
	}
	for i, e := range entries {
		if predicate.Limit > 0 && int64(to.slice.Len()) >= predicate.Limit {
			return i, nil
		}
		obj := to.newItem()
		if err := s.codec.object(ctx, e, obj); err != nil {
			return i, err
		}
		// An object whose attributes cannot be read matches nothing, as in the storage in etcd.
		if matches, err := predicate.Matches(obj); err == nil && matches {
			to.append(obj)
		}
	}
	return len(entries), nil
}
