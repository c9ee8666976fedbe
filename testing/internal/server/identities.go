package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identities gives UIDs to objects, and names to those of built-in kinds that ask for one. They are the same in each
// run of a test in which the same objects are created in the same order. The zero value is ready. It is safe for
// concurrent use.
type Identities struct {
	// Salt has the UIDs differ from those of a storage with another one. Names are drawn with it, as by any API server,
	// so that they differ from those that an earlier server gave. It is not changed after the first object.
	Salt string

	mu sync.Mutex
	// generated is how many names there are of a prefix, created how many objects there were of a key.
	generated, created map[string]int
}

var _ identifier = &Identities{}

// maxPrefix is how much of a prefix is kept in a generated name: names that may be labels have up to 63 characters.
const maxPrefix = 58

// GenerateName implements [names.NameGenerator]. It counts the names of each prefix, unless there is a salt.
func (i *Identities) GenerateName(prefix string) string {
	if i.Salt != "" {
		return names.SimpleNameGenerator.GenerateName(prefix)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.generated == nil {
		i.generated = map[string]int{}
	}
	i.generated[prefix]++
	return fmt.Sprintf("%s%05d", prefix[:min(len(prefix), maxPrefix)], i.generated[prefix])
}

// uid returns the UID of the next object of a key.
func (i *Identities) uid(key string) types.UID {
	i.mu.Lock()
	defer i.mu.Unlock()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s%s#%d", i.Salt, key, i.created[key]))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// isCreated counts an object.
func (i *Identities) isCreated(key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.created == nil {
		i.created = map[string]int{}
	}
	i.created[key]++
}

// identifier gives objects their UIDs, and names to those of built-in kinds that ask for one.
type identifier interface {
	names.NameGenerator
	// begin gives an object that is about to be completed and validated its UID: a strategy may write it to other
	// fields. The key is that of the object. For a dry run it is one that no object gets.
	begin(ctx context.Context, key string, obj client.Object, dryRun bool)
	// decorate has objects get their UIDs when they are stored.
	decorate(decorator generic.StorageDecorator) generic.StorageDecorator
}

// begin implements [identifier].
func (i *Identities) begin(_ context.Context, key string, obj client.Object, dryRun bool) {
	if dryRun {
		key = "dry run of " + key
	}
	obj.SetUID(i.uid(key))
}

// decorate implements [identifier].
func (i *Identities) decorate(decorator generic.StorageDecorator) generic.StorageDecorator {
	return wrapped(decorator, func(s storage.Interface) storage.Interface { return identified{s, i} })
}

// wrapped has wrap wrap the storages that a decorator makes.
func wrapped(
	decorator generic.StorageDecorator, wrap func(storage.Interface) storage.Interface,
) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource, prefix string, cacheKey func(obj runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, attributes storage.AttrFunc, trigger storage.IndexerFuncs,
		indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := decorator(
			config, prefix, cacheKey, newFunc, newListFunc, attributes, trigger, indexers)
		return wrap(s), destroy, err
	}
}

// identified is a storage that gives UIDs.
type identified struct {
	storage.Interface
	identities *Identities
}

// Create implements [storage.Interface].
func (s identified) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.identify(key, obj); err != nil {
		return err
	}
	err := s.Interface.Create(ctx, key, obj, out, ttl)
	if err == nil {
		s.identities.isCreated(key)
	}
	return err
}

// GuaranteedUpdate implements [storage.Interface]. It creates an object if there is none and the caller wants one.
func (s identified) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	creates := false
	err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions,
		func(live runtime.Object, known storage.ResponseMeta) (runtime.Object, *uint64, error) {
			creates = known.ResourceVersion == 0
			next, ttl, err := update(live, known)
			if err == nil && creates {
				err = s.identify(key, next)
			}
			return next, ttl, err
		}, cached)
	if err == nil && creates {
		s.identities.isCreated(key)
	}
	return err
}

func (s identified) identify(key string, obj runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	accessor.SetUID(s.identities.uid(key))
	return nil
}
