package informer

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// NewClient returns the client of a cluster for reads of nodes.
//
// Reads of kinds that the cluster may not serve do not wait for an informer, and make none for a kind that is gone.
// Such a read returns what explain makes of [ErrNotServed] and [ErrSyncing].
//
// If bounded is true, any other read waits for a limited time only for a cache that does not sync, and returns an error
// that names the missing right. The client of controller-runtime would wait until the program ends. The cluster of the
// manager does not need it for what is watched at set-up, because a controller does not start before that has synced.
// Timeout is how long all readers of a type wait; 0 for [DefaultTimeout].
func NewClient(
	in cluster.Cluster, bounded bool, timeout time.Duration, explain func(schema.GroupVersionKind, error) error,
) client.Client {
	return &reads{Client: in.GetClient(), in: in, bounded: bounded, timeout: timeout, explain: explain}
}

// NewCacheReader returns a reader that reads all objects from the cache of a cluster, unstructured ones too, as a
// bounded [NewClient] does.
func NewCacheReader(
	in cluster.Cluster, timeout time.Duration, explain func(schema.GroupVersionKind, error) error,
) client.Reader {
	cached := cacheReads{in.GetClient(), in.GetCache()}
	return &reads{Client: cached, in: in, bounded: true, timeout: timeout, explain: explain, untyped: true}
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

type reads struct {
	client.Client
	in      cluster.Cluster
	bounded bool
	timeout time.Duration
	explain func(schema.GroupVersionKind, error) error
	// untyped is true if Client reads unstructured objects from the cache, too.
	untyped bool

	// kinds are those of the cluster, once there are any.
	kinds atomic.Pointer[Kinds]
	// waits has a *wait for each readType, nil once there was an answer: from then on the cache has synced.
	waits sync.Map
}

// readType identifies what is read: a Go type and, if objects of several kinds have it, the kind.
type readType struct {
	read reflect.Type
	kind schema.GroupVersionKind
}

var _ client.WithWatch = (*reads)(nil)

// Get implements [client.Reader].
func (r *reads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if r.plain() {
		return r.Client.Get(ctx, key, obj, opts...)
	}
	return r.read(ctx, obj, key.Namespace, func(ctx context.Context) error {
		return r.Client.Get(ctx, key, obj, opts...)
	})
}

// List implements [client.Reader].
func (r *reads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.plain() {
		return r.Client.List(ctx, list, opts...)
	}
	namespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.read(ctx, list, namespace, func(ctx context.Context) error { return r.Client.List(ctx, list, opts...) })
}

// Watch implements [client.WithWatch]. It returns an error if the client of the cluster does not.
func (r *reads) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	watcher, ok := r.Client.(client.WithWatch)
	if !ok {
		return nil, errors.New("the client of the cluster cannot watch")
	}
	return watcher.Watch(ctx, list, opts...)
}

// plain reports whether reads are those of the client of the cluster.
func (r *reads) plain() bool { return !r.bounded && !anyKinds.Load() }

// read calls do for an object or a list.
func (r *reads) read(
	ctx context.Context, obj runtime.Object, namespace string, do func(context.Context) error,
) error {
	kinds := r.kinds.Load()
	if kinds == nil && anyKinds.Load() {
		kinds = kindsOf(r.in, false)
		r.kinds.Store(kinds)
	}
	if kinds != nil {
		if gvk, err := r.kindOf(obj); err == nil {
			if kind := kinds.known(gvk); kind != nil {
				return r.guarded(ctx, kind, obj, namespace, do)
			}
		}
	}
	if r.bounded {
		return r.limited(ctx, obj, namespace, do)
	}
	return do(ctx)
}

// kindOf returns the kind of an object, or of the items of a list.
func (r *reads) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := r.GroupVersionKindFor(obj)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}

// limited calls do, and limits its time until the first answer for that type.
func (r *reads) limited(
	ctx context.Context, obj runtime.Object, namespace string, do func(context.Context) error,
) error {
	t := readType{reflect.TypeOf(obj), obj.GetObjectKind().GroupVersionKind()}
	known, ok := r.waits.Load(t)
	if !ok {
		known, _ = r.waits.LoadOrStore(t, &wait{timeout: r.timeout})
	}
	limit := known.(*wait)
	if limit == nil {
		return do(ctx)
	}
	limited, cancel := limit.context(ctx)
	defer cancel()
	err := do(limited)
	switch {
	case ctx.Err() != nil:
		return err
	case !isUnsynced(err):
		r.waits.Store(t, (*wait)(nil))
		if limited.Err() != nil && err != nil {
			// It does not read from a cache, and takes its time.
			return do(ctx)
		}
		return err
	}
	gvk, err := r.kindOf(obj)
	if err != nil {
		return err
	}
	return notSynced(ctx, r.in, gvk, namespace)
}

// guarded calls do, unless the kind of obj cannot be read.
func (r *reads) guarded(
	ctx context.Context, kind *Kind, obj runtime.Object, namespace string, do func(context.Context) error,
) error {
	var item client.Object
	if _, untyped := obj.(runtime.Unstructured); !untyped || r.untyped {
		item = Item(obj, kind.GroupVersionKind, r.Scheme())
	} else {
		// The client reads it past the cache, unless the author said otherwise. Then it must not wait for ever.
		limited, cancel := context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
		ctx = limited
	}
	var failed error
	err := kind.Read(ctx, item, namespace, func() error {
		failed = do(ctx)
		return nil
	})
	if err != nil {
		return r.explain(kind.GroupVersionKind, err)
	}
	return failed
}
