package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// boundedReads is the client of a cluster other than the manager's. A read waits for a limited time only for a cache
// that does not sync, and returns an error that names the missing right. The client of controller-runtime would wait
// until the program ends.
//
// The manager's own cluster does not need it for what is watched at set-up, because a controller does not start before
// that has synced.
type boundedReads struct {
	client.Client
	in      cluster.Cluster
	timeout time.Duration

	// waits has a *syncWait for each readType, nil once there was an answer: from then on the cache has synced.
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

// Watch implements [client.WithWatch]. It returns an error if the client of the cluster does not.
func (r *boundedReads) Watch(
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
		known, _ = r.waits.LoadOrStore(t, &syncWait{timeout: r.timeout})
	}
	wait := known.(*syncWait)
	if wait == nil {
		return read(ctx)
	}
	limited, cancel := wait.context(ctx)
	defer cancel()
	err := read(limited)
	switch {
	case ctx.Err() != nil:
		return err
	case !isUnsynced(err):
		r.waits.Store(t, (*syncWait)(nil))
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

// otherSource is a watch in a cluster other than the manager's. A controller waits for the cache of such a cluster for
// a limited time only, and the watch goes on then. Without that, a cache that does not sync would keep the controller
// from starting, and the manager would stop after two minutes.
type otherSource struct {
	source.SyncingSource
	log     logr.Logger
	timeout time.Duration
	run     context.Context
}

func newOtherSource(
	log logr.Logger, in cluster.Cluster, timeout time.Duration, obj client.Object, handler handler.EventHandler,
) *otherSource {
	return &otherSource{SyncingSource: source.Kind(in.GetCache(), obj, handler), log: log, timeout: timeout}
}

// Start implements [source.Source].
func (s *otherSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
	s.run = ctx
	return s.SyncingSource.Start(ctx, queue)
}

// WaitForSync implements [source.SyncingSource].
func (s *otherSource) WaitForSync(ctx context.Context) error {
	synced := make(chan error, 1)
	go func() {
		// The source stops when the context of its first WaitForSync ends.
		synced <- s.SyncingSource.WaitForSync(s.run)
	}()
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	select {
	case err := <-synced:
		return err
	case <-ctx.Done():
		return nil
	case <-timer.C:
		s.log.Error(nil, "the cache of another cluster does not sync, and the controller starts without it",
			"source", fmt.Sprint(s.SyncingSource))
		return nil
	}
}
