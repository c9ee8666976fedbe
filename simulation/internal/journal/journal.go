// Package journal tells what is written to a storage: each change of an object, when it is made.
package journal

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Change is a write that had an effect.
type Change struct {
	// Before is nil if the object was created, After if it was deleted. They belong to the storage.
	Before, After runtime.Object
}

// Decorate returns a decorator whose storages call written after each change, before the writer has its answer.
// Changes of one object come in their order. The context is that of the request.
func Decorate(
	decorator generic.StorageDecorator, written func(ctx context.Context, c Change),
) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource, prefix string, cacheKey func(obj runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := decorator(config, prefix, cacheKey, newFunc, newListFunc, attributes, trigger, indexers)
		return journaled{s, written}, destroy, err
	}
}

// journaled is a storage that tells what is written.
type journaled struct {
	storage.Interface
	written func(ctx context.Context, c Change)
}

// Create implements [storage.Interface].
func (s journaled) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil {
		s.written(ctx, Change{After: out})
	}
	return err
}

// GuaranteedUpdate implements [storage.Interface].
func (s journaled) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	var before runtime.Object
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(live runtime.Object, known storage.ResponseMeta) (runtime.Object, *uint64, error) {
			before = nil
			if known.ResourceVersion != 0 {
				before = live.DeepCopyObject()
			}
			return update(live, known)
		}, cached)
	if err == nil && version(before) != version(destination) {
		s.written(ctx, Change{Before: before, After: destination})
	}
	return err
}

// Delete implements [storage.Interface].
func (s journaled) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil {
		s.written(ctx, Change{Before: out})
	}
	return err
}

// version returns the resource version of an object, 0 for nil.
func version(obj runtime.Object) uint64 {
	if obj == nil {
		return 0
	}
	n, err := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	if err != nil {
		return 0
	}
	return n
}
