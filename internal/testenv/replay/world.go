package replay

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// Program is what is run.
type Program struct {
	// Clusters are the clusters by the name of their config, before the first request. Runs work with forks.
	Clusters map[string]Cluster
	// Now is the time of the first request.
	Now time.Time
	// Start makes an instance of the code, when a run begins and after each death. The instance works with the clients
	// of the world alone. An error ends the exploration.
	Start func(ctx context.Context, w *World) (Instance, error)
	// Externals are what the code works with beside the clusters.
	Externals []External
}

// Cluster is a store, and what its cache does not see when a run begins.
type Cluster struct {
	Store  *store.Store
	Hidden []store.Key
}

// Instance makes one request. The context has the time of the world.
type Instance func(ctx context.Context) (reconcile.Result, error)

// External is something outside of the clusters, such as a service in the cloud.
type External struct {
	// Reset brings it to its state before the first request.
	Reset func()
	// End returns its state, to be compared with that at the end of another run; anything that can be encoded as JSON.
	End func() any
}

// World is where one run takes place. It is safe for concurrent use.
type World struct{}

// Client returns the client of a cluster, which reads from a cache. Its calls are calls of the run.
func (w *World) Client(cluster string) client.WithWatch { panic("TODO") }

// APIReader is Client without the cache.
func (w *World) APIReader(cluster string) client.Reader { panic("TODO") }

// As returns a client for somebody else. Its calls are not calls of the run.
func (w *World) As(cluster, manager string) client.WithWatch { panic("TODO") }

// Do makes a call to something outside of the clusters, as a call of the run.
func (w *World) Do(ctx context.Context, call string, do func() error) error { panic("TODO") }

// Now is the time in the world.
func (w *World) Now() time.Time { panic("TODO") }

// Calls are the names of the calls made so far.
func (w *World) Calls() []string { panic("TODO") }
