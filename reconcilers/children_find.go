package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/ownership"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// find returns the current config, and the objects that are the node's children, sorted by namespace and name. They are
// for reading.
//
// If the resource is terminating, the node must not overlook a child that garbage collection does not delete. So if the
// cache shows none, the API server is asked. If the children are withdrawn, that is done before their finalizer is
// taken off the resource.
//
// If the resource is deleted without what depends on it, there are no children any more: the garbage collector takes
// owner references off, and the node its labels where there is none.
//
// The returned context knows whether the type is served, see lacking.
func (k *children[T, CT, CLT]) find(
	ctx context.Context, resource T,
) (_ context.Context, config Config, found []CT, err error) {
	if config, err = RetrieveConfig(ctx); err != nil {
		return ctx, config, nil, fmt.Errorf("%s %q: %w", k.kind, k.name, err)
	}
	if err := k.completeListType(config); err != nil {
		return ctx, config, nil, err
	}
	candidates, err := k.candidates(ctx, config, resource)
	if k.optional && isKindNotServed(err) {
		ctx, err = context.WithValue(ctx, lackingKey{}, err), nil
	}
	found = k.ownOf(ctx, resource, k.ofItem(ctx, config, candidates))
	asks := err == nil && k.unowned && len(found) == 0 && config.APIReader != nil
	asks = asks && (resource.GetDeletionTimestamp() != nil ||
		SupervisionOf(ctx, resource) == Withdraw && k.holdsFinalizer(resource))
	if asks && k.optional {
		asks, err = k.mayExist(ctx, config)
	}
	if asks {
		candidates, err = k.live(ctx, config, resource)
		found = k.ownOf(ctx, resource, candidates)
		if apierrs.IsBadRequest(err) {
			// Only the cache understands these options.
			err = nil
		}
	}
	if err == nil && ownership.Orphans(resource) {
		if k.unowned {
			err = k.letGo(ctx, config, found)
		}
		found = nil
	}
	if err != nil {
		recordFailure(ctx, typeName(k.childType), err)
	}
	return ctx, config, found, err
}

// candidates returns the objects among which the children are: what the cache shows, corrected by what the controller
// wrote. Outside of a root there is no request to keep them in, and each call lists.
func (k *children[T, CT, CLT]) candidates(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	if k.optional {
		return k.optionalCandidates(ctx, config, resource)
	}
	return k.cached(ctx, config, resource)
}

// cached is candidates for a type that is served.
func (k *children[T, CT, CLT]) cached(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	request := listKeeper(ctx)
	if request == nil {
		return k.shown(ctx, config, resource)
	}
	key := k.listKey(ctx, config)
	return request.lists.Once(key, func() ([]client.Object, error) {
		// References into the cache are enough, because they are copied below.
		listed, err := k.list(ctx, config, resource, client.UnsafeDisableDeepCopy)
		if err == nil {
			listed, err = k.withHidden(ctx, config, resource, listed)
		}
		if err != nil {
			return nil, err
		}
		now := rtime.RetrieveNow(ctx)
		return listing.Believe(ctx, request.resource, config.APIReader, now, key, k.indexed.Kind, listed)
	})
}

// list returns what the cache has. Without list options of the author, these are the objects that the resource
// controls. With list options, the objects that are no children of the node are left out, so that they are not kept.
func (k *children[T, CT, CLT]) list(
	ctx context.Context, config Config, resource T, opts ...client.ListOption,
) ([]client.Object, error) {
	return k.listFrom(ctx, config.readerOf(ctx, k.listType), config.owners, resource, opts...)
}

// live is list past the cache.
func (k *children[T, CT, CLT]) live(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	return k.listFrom(ctx, config.APIReader, nil, resource)
}

func (k *children[T, CT, CLT]) listFrom(
	ctx context.Context, reader client.Reader, index *listing.Index, resource T, opts ...client.ListOption,
) ([]client.Object, error) {
	if k.listOptions == nil {
		return index.Controlled(ctx, reader, k.indexed, k.listType, resource, opts...)
	}
	mayBeOwn := func(obj client.Object) bool { return k.mayBeOwn(resource, obj) }
	opts = slices.Concat(k.listOptions(ctx, resource), opts)
	return listing.List(ctx, reader, k.listType, mayBeOwn, opts...)
}

func (k *children[T, CT, CLT]) listKey(ctx context.Context, config Config) listing.ListKey {
	key := listing.ListKey{
		Reader: config.Client,
		Listed: reflect.TypeOf(k.listType),
		Kind:   k.listType.GetObjectKind().GroupVersionKind(),
	}
	if k.listOptions != nil {
		key.Node = itemOf(ctx).of(k.node)
	}
	return key
}

// listKeeper returns the state of the request that keeps lists of children. It returns nil if there is none: outside of
// a root, and for a client that cannot be the key of a map.
func listKeeper(ctx context.Context) *requestState {
	if s := contextOf(ctx); s.state != nil && s.state.resource != nil && s.comparable {
		return s.state
	}
	return nil
}

// withUnlabelled returns found together with the unlabelled children that have the name of a desired one.
func (k *children[T, CT, CLT]) withUnlabelled(
	ctx context.Context, config Config, resource T, found []CT, desired ...CT,
) ([]CT, error) {
	item := itemOf(ctx).labelled()
	if k.label == "" && item == "" {
		return found, nil
	}
	names := map[client.ObjectKey]bool{}
	for _, child := range desired {
		if !gotype.IsNil(child) {
			names[client.ObjectKeyFromObject(child)] = true
		}
	}
	for _, child := range found {
		delete(names, client.ObjectKeyFromObject(child))
	}
	if len(names) == 0 {
		return found, nil
	}
	candidates, err := k.candidates(ctx, config, resource)
	if err != nil && (lacking(ctx) == nil || !isKindNotServed(err)) {
		return nil, err
	}
	for _, obj := range candidates {
		if names[client.ObjectKeyFromObject(obj)] && k.isUnlabelled(resource, obj, item) {
			found = append(found, obj.(CT))
		}
	}
	return found, nil
}
