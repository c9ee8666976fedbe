package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

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
	// kept are kinds whose informers have to stay in the cache.
	kept map[schema.GroupVersionKind]bool
	// added is true once a manager runs it.
	added bool
	// watched are the definitions whose watch has synced.
	watched map[string]bool
	// change is sent to when a check may be due.
	change chan struct{}
	// follow starts to follow what is served, as soon as it runs, by closing asked.
	follow func()
	asked  chan struct{}
}

// Ask asks the API server where it serves a kind. The result is empty if it does not serve the kind. A kind without a
// version is asked for in any version.
type Ask func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error)

// NewKinds returns Kinds without a cache, of the API server that ask and objects reach. [Kinds.Start] runs them.
func NewKinds(objects metadata.Interface, ask Ask, log logr.Logger) *Kinds {
	asked := make(chan struct{})
	return &Kinds{
		metadata: objects, ask: ask, log: log,
		byKind: map[schema.GroupVersionKind]*Kind{}, kept: map[schema.GroupVersionKind]bool{},
		watched: map[string]bool{}, change: make(chan struct{}, 1),
		follow: sync.OnceFunc(func() { close(asked) }), asked: asked,
	}
}

// anyKinds is true once a program has kinds that may not be served, so that other programs do not look for them.
var anyKinds atomic.Bool

// ofProgram are the Kinds of the program with a cache. The controllers that need them hold them.
var ofProgram struct {
	sync.Mutex
	all []weak.Pointer[Kinds]
}

// kindsOf returns the Kinds of a cluster. If there are none, it returns nil unless create is true, and else some
// without the means to ask the cluster.
func kindsOf(in cluster.Cluster, create bool) *Kinds {
	ofProgram.Lock()
	defer ofProgram.Unlock()
	gone := func(one weak.Pointer[Kinds]) bool { return one.Value() == nil }
	ofProgram.all = slices.DeleteFunc(ofProgram.all, gone)
	for _, one := range ofProgram.all {
		if k := one.Value(); k != nil && k.in == in {
			return k
		}
	}
	if !create {
		return nil
	}
	k := NewKinds(nil, nil, logr.Discard())
	k.in = in
	ofProgram.all = append(ofProgram.all, weak.Make(k))
	return k
}

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
	k := kindsOf(in, true)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ask == nil {
		k.metadata, k.ask, k.log = objects, askVersion(asks), log
	}
	return k, nil
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
	select {
	case <-ctx.Done():
		return nil
	case <-k.asked:
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for _, definition := range Definitions {
		tasks.Go(func() { k.watch(ctx, definition) })
	}
	k.check(ctx)
	return nil
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

// keep notes that a watch of a kind is not one of the Kinds.
func (k *Kinds) keep(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[gvk] = true
}

func (k *Kinds) keeps(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[gvk]
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
	api := discovery.ToDiscoveryInterfaceWithContext(asks)
	return func(ctx context.Context, gvk schema.GroupVersionKind) (none schema.GroupVersionResource, err error) {
		list, err := api.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
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

// followed reports whether all that defines types is watched.
func (k *Kinds) followed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.watched) == len(Definitions)
}

func (k *Kinds) wake() {
	select {
	case k.change <- struct{}{}:
	default:
	}
}

// syncPoll is how often it is looked whether an informer has synced that somebody waits for.
const syncPoll = 100 * time.Millisecond

// check checks the kinds that are due, until the manager stops.
func (k *Kinds) check(ctx context.Context) {
	for {
		followed := k.followed()
		var first time.Time
		for _, kind := range k.all() {
			at, due := kind.next(followed)
			if due && !at.After(time.Now()) {
				_ = kind.check(ctx) // An error is followed by another check.
				at, due = kind.next(followed)
			}
			if kind.awaitsSync() {
				at, due = time.Now().Add(syncPoll), true
			}
			if due && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		var expired <-chan time.Time
		timer := time.NewTimer(max(time.Until(first), 10*time.Millisecond))
		if !first.IsZero() {
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
