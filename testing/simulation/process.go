package simulation

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// process is the manager that an operator adds its parts to. A pointer to it can be compared, as it names a cluster.
type process struct {
	ctrl.Manager
	ctx      context.Context
	panicked func(reason any, stack string)
}

// Add implements [manager.Manager]. Nobody waits for the cache of a cluster when the process has ended, and a panic of
// what the operator runs is one of the process. Controllers and servers handle their own.
func (p *process) Add(added manager.Runnable) error {
	switch added := added.(type) {
	case crcluster.Cluster:
		return p.Manager.Add(endingCluster{added, p.ctx})
	case *manager.Server, webhook.Server:
		return p.Manager.Add(added)
	case warmable:
		return p.Manager.Add(warming{part{added, p.panicked}, added, make(chan struct{})})
	}
	return p.Manager.Add(part{added, p.panicked})
}

// part is something that an operator runs.
type part struct {
	manager.Runnable
	panicked func(reason any, stack string)
}

// Start implements [manager.Runnable]. A panic is an error.
func (r part) Start(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.panicked(reason, panicStack())
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return r.Runnable.Start(ctx)
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (r part) NeedLeaderElection() bool {
	elected, ok := r.Runnable.(manager.LeaderElectionRunnable)
	return !ok || elected.NeedLeaderElection()
}

// warmable is a controller.
type warmable interface {
	manager.Runnable
	Warmup(ctx context.Context) error
}

// warming is a controller that starts when it is warm. By itself it waits for a mutex that it holds while its caches
// are filled, and virtual time stands still.
type warming struct {
	part
	controller warmable
	warm       chan struct{}
}

// Warmup fills the caches if the controller wants that before it is elected.
func (c warming) Warmup(ctx context.Context) error {
	defer close(c.warm)
	return c.controller.Warmup(ctx)
}

// Start implements [manager.Runnable].
func (c warming) Start(ctx context.Context) error {
	select {
	case <-c.warm:
		return c.controller.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

// endingCluster is a cluster with a cache that is ending.
type endingCluster struct {
	crcluster.Cluster
	process context.Context
}

// GetCache implements [crcluster.Cluster].
func (c endingCluster) GetCache() cache.Cache {
	return ending{Cache: c.Cluster.GetCache(), process: c.process}
}

// ending is a cache that nobody waits for when its process has ended: a manager that waits for it meanwhile would never
// return.
type ending struct {
	cache.Cache
	process context.Context
}

// WaitForCacheSync implements [cache.Informers].
func (e ending) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.process, cancel)()
	return e.Cache.WaitForCacheSync(ctx) || e.process.Err() != nil
}
