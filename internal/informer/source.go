package informer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// NewSource returns a watch in a cluster other than the manager's. A controller waits for the cache of such a cluster
// for a limited time only, and the watch goes on then. Without that, a cache that does not sync would keep the
// controller from starting, and the manager would stop after two minutes. A timeout of 0 is [DefaultTimeout].
func NewSource(
	log logr.Logger, in cluster.Cluster, timeout time.Duration, obj client.Object, handler handler.EventHandler,
) source.SyncingSource {
	return &otherSource{
		SyncingSource: source.Kind(in.GetCache(), obj, handler), log: log, timeout: cmp.Or(timeout, DefaultTimeout),
	}
}

type otherSource struct {
	source.SyncingSource
	log     logr.Logger
	timeout time.Duration
	run     context.Context
}

// Start implements [source.Source].
func (s *otherSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
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
