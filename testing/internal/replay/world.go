package replay

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Program is what is run.
type Program struct {
	// Clusters are the clusters by the name of their config, before the first request. Runs work with forks.
	Clusters map[string]Cluster
	// Now is the time of the first request. If it is zero, the time is that of package time, and delays are slept: code
	// that waits by itself has the time of the world that way in a bubble of testing/synctest, where nobody waits.
	Now time.Time
	// Request names the resource: the first object of that name that is read in the first cluster. A user can delete
	// it. Zero is none.
	Request types.NamespacedName
	// Patience is how long one request may take; then it counts as one that does not return. 0 is 2 minutes, or a day
	// with Within.
	Patience time.Duration
	// Within calls a run, from its Begin to its end, such as in a bubble of testing/synctest; nil just calls it. With
	// it the contexts of a run have the values of that of the exploration, but neither its deadline nor its end. These
	// are looked at before each run.
	Within func(run func())
	// Begin begins a run, once its Externals are reset, and returns what ends it; both may be nil. It is called before
	// the first Start, and its end when the last instance is dead, exactly once, before the next run begins. The
	// context has the time of the first request, and outlives the run. An error ends the exploration; there is no end
	// then.
	Begin func(ctx context.Context) (end func(), err error)
	// Start makes an instance of the code, when a run begins and after each death. The instance works with the clients
	// of this world alone. An error ends a run without a fault; in another it counts as a death. The context lives as
	// long as the instance.
	Start func(ctx context.Context, w *World) (Instance, error)
	// IgnoreObserved takes a request that changes nothing but the observed generation in a status for one without an
	// effect. Otherwise it leads to another request, as on a server, which hides that an error was swallowed. It is not
	// for code that leaves out its result after a write of the status, since the event of the write follows.
	IgnoreObserved bool
	// Externals are what the code works with beside the clusters.
	Externals []External
	// Steps are what others do, in their order, each once the code is at rest. It runs to rest again after each, and
	// the ends of all are compared. Nil is one run to rest.
	Steps []Step
	// Invariant holds after each call; nil is none.
	Invariant Invariant
}

// Cluster is a store, and what its cache does not see when a run begins.
type Cluster struct {
	Store  *store.Store
	Hidden []store.Key
	// Options are those of the clients of the code. The view and the calls between belong to the world.
	Options store.ClientOptions
}

// Instance makes one request. The context has the time of the world, unless a time was pinned in the context that the
// exploration was started with; it is cancelled when the instance dies. A panic is an error of the request.
type Instance func(ctx context.Context) (reconcile.Result, error)

// External is something outside of the clusters, such as a service in the cloud.
type External struct {
	// Reset brings it to its state before the first request; nil does nothing.
	Reset func()
	// End returns its state, to be compared with that at the end of another run; anything that can be encoded as JSON,
	// or nil if there is none.
	// It is also called after requests that made a call with World.Do: a state that changed keeps the run going.
	//
	// Neither Reset nor End is called while a call with World.Do of a dead instance goes on. End may be called while
	// one of a live instance does that outlives its request.
	End func() any
}

// World is where one run takes place, as one instance of the code sees it. It is safe for concurrent use.
//
// Once the instance is dead, and once the run is over, calls with this world return context.Canceled and have no
// effect, also those of goroutines that the instance left behind.
type World struct {
	run      *run
	instance *instance
}

// Client returns the client of a cluster, which reads from a cache. Its calls are calls of the run. It panics if the
// program has no such cluster.
func (w *World) Client(cluster string) client.WithWatch {
	return w.client(cluster, true)
}

// APIReader is Client without the cache.
func (w *World) APIReader(cluster string) client.WithWatch {
	return w.client(cluster, false)
}

func (w *World) client(name string, cached bool) client.WithWatch {
	c := w.run.cluster(name)
	options := c.options
	options.View, options.Intercept = nil, w.intercept(c)
	if cached {
		options.View = c.view
	}
	return c.store.Client(options)
}

// As returns a client for somebody else. Its calls are not calls of the run, and go on when the instance is dead.
func (w *World) As(cluster, manager string) client.WithWatch {
	c := w.run.cluster(cluster)
	return c.store.Client(store.ClientOptions{
		Scheme: c.options.Scheme, FieldManager: manager,
		Intercept: func(_ context.Context, _ store.Call, do func() error) error {
			w.run.mu.Lock()
			defer w.run.mu.Unlock()
			return do()
		},
	})
}

// Store is the state of a cluster. What is done to it is no call of the run.
func (w *World) Store(cluster string) *store.Store { return w.run.cluster(cluster).store }

// Do makes a call to something outside of the clusters, as a call of the run. The call is its name. With a context that
// is done it is not made.
//
// Each call counts as one that had an effect, also one that only reads, because nothing tells which do: an instance
// dies after it too, and its answer is lost once. A call that is not made at rest without a fault must not be made at
// rest with one.
func (w *World) Do(ctx context.Context, call string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.run.doExternal(ctx, w.instance, call, do)
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.run.time() }

func (w *World) intercept(c *cluster) store.Intercept {
	return func(ctx context.Context, call store.Call, do func() error) error {
		return w.run.do(ctx, w.instance, c, call, do)
	}
}

// cluster returns a cluster of the run.
func (r *run) cluster(name string) *cluster {
	c, ok := r.clusters[name]
	if !ok {
		panic(fmt.Sprintf("the program has no cluster %q", name))
	}
	return c
}

// named is the name of the cluster; empty if there is none.
func (c *cluster) named() string {
	if c == nil {
		return ""
	}
	return c.name
}
