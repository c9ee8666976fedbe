package informer

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Guard returns a client whose reads of kinds that the cluster may not serve do not wait for an informer, and make none
// for a kind that is gone. Such a read returns what explain makes of [ErrNotServed] and [ErrSyncing]. Reads of other
// kinds are those of inner.
func Guard(
	in cluster.Cluster, inner client.Client, explain func(schema.GroupVersionKind, error) error,
) client.Client {
	return &guardedReads{watching: watching{inner}, in: in, explain: explain}
}

// NewCacheReader returns a reader that reads all objects from the cache of a cluster, unstructured ones too, as [Guard]
// and [NewClient] do.
func NewCacheReader(
	in cluster.Cluster, timeout time.Duration, explain func(schema.GroupVersionKind, error) error,
) client.Reader {
	inner := &boundedReads{watching: watching{cacheReads{in.GetClient(), in.GetCache()}}, in: in, timeout: timeout}
	return &guardedReads{watching: watching{inner}, in: in, explain: explain, untyped: true}
}

// cacheReads is a client that reads from a cache.
type cacheReads struct {
	client.Client
	cache client.Reader
}

// Get implements [client.Reader].
func (r cacheReads) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return r.cache.Get(ctx, key, obj, opts...)
}

// List implements [client.Reader].
func (r cacheReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.cache.List(ctx, list, opts...)
}

type guardedReads struct {
	watching
	in      cluster.Cluster
	explain func(schema.GroupVersionKind, error) error
	// untyped is true if inner reads unstructured objects from the cache, too.
	untyped bool
	// kinds are those of the cluster, once there are any.
	kinds atomic.Pointer[Kinds]
}

var _ client.WithWatch = (*guardedReads)(nil)

// Get implements [client.Reader].
func (r *guardedReads) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	if !anyKinds.Load() {
		return r.Client.Get(ctx, key, obj, opts...)
	}
	return r.guarded(ctx, obj, key.Namespace, func(ctx context.Context) error {
		return r.Client.Get(ctx, key, obj, opts...)
	})
}

// List implements [client.Reader].
func (r *guardedReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !anyKinds.Load() {
		return r.Client.List(ctx, list, opts...)
	}
	namespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.guarded(ctx, list, namespace, func(ctx context.Context) error {
		return r.Client.List(ctx, list, opts...)
	})
}

// guarded calls read, unless the kind of obj, an object or a list, cannot be read.
func (r *guardedReads) guarded(
	ctx context.Context, obj runtime.Object, namespace string, read func(context.Context) error,
) error {
	kinds := r.kinds.Load()
	if kinds == nil {
		kinds = allKinds.findOr(func(k *Kinds) bool { return k.in == r.in }, nil)
		r.kinds.Store(kinds)
	}
	if kinds == nil {
		return read(ctx)
	}
	gvk, err := r.GroupVersionKindFor(obj)
	if err != nil {
		return read(ctx)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	kind := kinds.known(gvk)
	if kind == nil {
		return read(ctx)
	}
	var item client.Object
	if _, untyped := obj.(runtime.Unstructured); !untyped || r.untyped {
		item = Item(obj, gvk, r.Scheme())
	} else {
		// The client reads it past the cache, unless the author said otherwise. Then it must not wait for ever.
		limited, cancel := context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
		ctx = limited
	}
	var failed error
	err = kind.Read(ctx, item, namespace, func() error {
		failed = read(ctx)
		return nil
	})
	if err != nil {
		return r.explain(gvk, err)
	}
	return failed
}
