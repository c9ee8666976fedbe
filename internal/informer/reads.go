package informer

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// NewClient returns the client of a cluster other than the manager's. A read waits for a limited time only for a cache
// that does not sync, and returns an error that names the missing right. The client of controller-runtime would wait
// until the program ends. Timeout is how long all readers of a type wait; 0 for [DefaultTimeout].
//
// The manager's own cluster does not need it for what is watched at set-up, because a controller does not start before
// that has synced.
func NewClient(in cluster.Cluster, timeout time.Duration) client.Client {
	return &boundedReads{watching: watching{in.GetClient()}, in: in, timeout: timeout}
}

type boundedReads struct {
	watching
	in      cluster.Cluster
	timeout time.Duration

	// waits has a *wait for each readType, nil once there was an answer: from then on the cache has synced.
	waits sync.Map
}

// readType identifies what is read: a Go type and, if objects of several kinds have it, the kind.
type readType struct {
	read reflect.Type
	kind schema.GroupVersionKind
}

var _ client.WithWatch = (*boundedReads)(nil)

// Get implements [client.Reader].
func (r *boundedReads) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	return r.bounded(ctx, obj, key.Namespace, func(ctx context.Context) error {
		return r.Client.Get(ctx, key, obj, opts...)
	})
}

// List implements [client.Reader].
func (r *boundedReads) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	namespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.bounded(ctx, list, namespace, func(ctx context.Context) error {
		return r.Client.List(ctx, list, opts...)
	})
}

// watching is a client that watches if the client in it does.
type watching struct {
	client.Client
}

// Watch implements [client.WithWatch]. It returns an error if the client in it does not.
func (r watching) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	watcher, ok := r.Client.(client.WithWatch)
	if !ok {
		return nil, errors.New("the client of the cluster cannot watch")
	}
	return watcher.Watch(ctx, list, opts...)
}

// bounded calls read, and limits its time until the first answer for that type.
func (r *boundedReads) bounded(
	ctx context.Context, obj runtime.Object, namespace string, read func(context.Context) error,
) error {
	t := readType{reflect.TypeOf(obj), obj.GetObjectKind().GroupVersionKind()}
	known, ok := r.waits.Load(t)
	if !ok {
		known, _ = r.waits.LoadOrStore(t, &wait{timeout: r.timeout})
	}
	limit := known.(*wait)
	if limit == nil {
		return read(ctx)
	}
	limited, cancel := limit.context(ctx)
	defer cancel()
	err := read(limited)
	switch {
	case ctx.Err() != nil:
		return err
	case !isUnsynced(err):
		r.waits.Store(t, (*wait)(nil))
		if limited.Err() != nil && err != nil {
			// It does not read from a cache, and takes its time.
			return read(ctx)
		}
		return err
	}
	gvk, err := r.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return notSynced(ctx, r.in, gvk, namespace)
}
