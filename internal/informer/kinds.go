package informer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/served"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Kinds are the kinds that one cluster may not serve. It finds out whether they are served, when they are asked for
// first, and follows that while it runs: by a watch of what defines types, see definitions.go. Where the watch is not
// allowed it asks the API server again and again, with delays, as long as somebody waits for a kind.
type Kinds struct {
	// in has the cache of the kinds. It is nil for those of [NewKinds].
	in       cluster.Cluster
	metadata metadata.Interface
	ask      Ask
	log      logr.Logger

	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]*Kind
	// added is true once a manager runs it.
	added bool
	// run is nil until the manager starts it, and after it has stopped.
	run   context.Context
	tasks sync.WaitGroup
	// following is true once the definitions are watched, or that was tried.
	following bool
	// watched are the definitions whose watch has synced.
	watched map[string]bool
	// change is sent to when a check may be due.
	change chan struct{}
}

// Ask asks the API server where it serves a kind. The result is empty if it does not serve the kind. A kind without a
// version is asked for in any version.
type Ask func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error)

// NewKinds returns Kinds without a cache, of the API server that ask and objects reach. [Kinds.Start] runs them.
func NewKinds(objects metadata.Interface, ask Ask, log logr.Logger) *Kinds {
	return &Kinds{
		metadata: objects, ask: ask, log: log,
		byKind: map[schema.GroupVersionKind]*Kind{}, watched: map[string]bool{}, change: make(chan struct{}, 1),
	}
}

// anyKinds is true once a program has Kinds, so that other programs do not look for them.
var anyKinds atomic.Bool

// allKinds are the Kinds of the program. The controllers that need them hold them.
var allKinds weakList[Kinds]

// KindsOf returns the Kinds of a cluster. All callers in a program get the same. Asks is who is asked which kinds are
// served; nil to ask with the config of the cluster.
func KindsOf(in cluster.Cluster, log logr.Logger, asks discovery.DiscoveryInterface) (*Kinds, error) {
	if gotype.IsNil(asks) {
		made, err := discovery.NewDiscoveryClientForConfigAndClient(in.GetConfig(), in.GetHTTPClient())
		if err != nil {
			return nil, err
		}
		asks = made
	}
	config := rest.CopyConfig(in.GetConfig())
	config.NegotiatedSerializer = nil
	objects, err := metadata.NewForConfigAndClient(config, in.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	anyKinds.Store(true)
	return allKinds.findOr(func(k *Kinds) bool { return k.in == in }, func() *Kinds {
		created := NewKinds(objects, askVersion(asks), log)
		created.in = in
		return created
	}), nil
}

// RunWith has a manager run the Kinds. Further calls do nothing.
func (k *Kinds) RunWith(mgr manager.Manager) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.added {
		return nil
	}
	k.added = true
	return mgr.Add(k)
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable]. Nothing happens before a kind is asked for.
func (k *Kinds) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable]. It returns when ctx is done and nothing runs any more.
func (k *Kinds) Start(ctx context.Context) error {
	k.mu.Lock()
	k.run = ctx
	asked := len(k.byKind) > 0
	k.mu.Unlock()
	if asked {
		k.follow()
	}
	<-ctx.Done()
	k.mu.Lock()
	k.run = nil
	k.mu.Unlock()
	k.tasks.Wait()
	return nil
}

// spawn runs do until the manager stops. It returns false if the manager does not run.
func (k *Kinds) spawn(do func(ctx context.Context)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.run == nil || k.run.Err() != nil {
		return false
	}
	ctx := k.run
	k.tasks.Go(func() { do(ctx) })
	return true
}

// Of returns a kind, which may not be served.
func (k *Kinds) Of(gvk schema.GroupVersionKind) *Kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind := k.byKind[gvk]
	if kind == nil {
		kind = &Kind{GroupVersionKind: gvk, kinds: k}
		k.byKind[gvk] = kind
	}
	return kind
}

// known returns a kind, or nil if nobody said that it may not be served.
func (k *Kinds) known(gvk schema.GroupVersionKind) *Kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byKind[gvk]
}

func (k *Kinds) all() []*Kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]*Kind, 0, len(k.byKind))
	for _, kind := range k.byKind {
		all = append(all, kind)
	}
	return all
}

// askVersion asks for a kind in its version.
func askVersion(asks discovery.DiscoveryInterface) Ask {
	return func(_ context.Context, gvk schema.GroupVersionKind) (none schema.GroupVersionResource, err error) {
		list, err := asks.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
		switch {
		case apierrs.IsNotFound(err):
			return none, nil
		case err != nil:
			return none, err
		}
		return served.ResourceOf(list, gvk), nil
	}
}

// first finds out whether a kind is served when it is asked for first. The mapper makes no request for types that it
// knows. What it says is checked once, because it forgets nothing.
func (k *Kinds) first(gvk schema.GroupVersionKind) (resource schema.GroupVersionResource, err error) {
	mapping, err := k.in.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return resource, nil
	case err != nil:
		return resource, fmt.Errorf("unable to find out whether the cluster serves %s: %w", gvk.Kind, err)
	}
	return mapping.Resource, nil
}

// Due times of checks.
const (
	// pollUnserved is the longest delay between checks of a kind that somebody waits for.
	pollUnserved = 30 * time.Second
	// pollServed is the delay between checks of a kind that is served.
	pollServed = 5 * time.Minute
)

// afterEvent are the delays between the checks after an event of a definition: the API server serves a type, and says
// so, some time after its definition says it.
var afterEvent = []time.Duration{
	0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second,
}

// next returns after which delay a kind is checked again, and false for not at all. Checks are those of the current
// series of unchanged answers: since an event of the definition, or since somebody waits.
func next(served, awaited, followed bool, checks int, event bool) (time.Duration, bool) {
	switch {
	case event && checks < len(afterEvent):
		return afterEvent[checks], true
	case followed:
		return 0, false
	case served:
		return pollServed, true
	case awaited:
		return min(time.Second<<min(checks, 10), pollUnserved), true
	}
	return 0, false
}

// follow starts to follow what is served, unless that was done.
func (k *Kinds) follow() {
	k.mu.Lock()
	start := !k.following && k.run != nil
	k.following = k.following || start
	k.mu.Unlock()
	if !start {
		return
	}
	k.spawn(k.check)
	for _, definition := range definitions {
		k.spawn(func(ctx context.Context) { k.watch(ctx, definition) })
	}
}

// followed reports whether all that defines types is watched.
func (k *Kinds) followed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.watched) == len(definitions)
}

func (k *Kinds) wake() {
	select {
	case k.change <- struct{}{}:
	default:
	}
}

// check checks the kinds that are due, until the manager stops.
func (k *Kinds) check(ctx context.Context) {
	for {
		now := time.Now()
		followed := k.followed()
		var delay time.Duration
		var any bool
		for _, kind := range k.all() {
			if ctx.Err() != nil {
				return
			}
			kind.checkIfDue(ctx, now, followed)
			if at, due := kind.due(followed); due && (!any || at.Sub(now) < delay) {
				any, delay = true, at.Sub(now)
			}
		}
		var expired <-chan time.Time
		timer := time.NewTimer(max(delay, 10*time.Millisecond))
		if any {
			expired = timer.C
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-k.change:
		case <-expired:
		}
		timer.Stop()
	}
}
