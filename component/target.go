package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/readiness"
	"github.com/espalier-dev/espalier/reconcilers"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// target is a cluster as seen with one identity, and the observer of what is there. The components that are
// deployed there with that identity share it.
type target struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	// fresh makes a client whose requests have a connection each; nil if there is none.
	fresh    func() (client.Client, error)
	observer observe.Observer
	// server identifies the API server. It is empty for the cluster of the operator.
	server string
	// reachability is nil for the cluster of the operator.
	reachability *clusters.Reachability
	// unwatched is true if no watch wakes the components. They are then requeued after a delay.
	unwatched bool
	// inMemory is true if the client may be one in memory, without a REST mapper that knows kinds. The scheme then says
	// which kinds there are.
	inMemory bool
	// users are the components that are deployed here; nil if it is not shared.
	users map[user]types.NamespacedName
	// size returns how much a shared target watches.
	size func() (types, objects int, running bool)
	// kinds returns of how many objects of each type it does.
	kinds func() map[schema.GroupKind]int
	// stop ends the watches of a shared target.
	stop func()
}

// user is a component that is deployed to a target: the UID of its resource, and its item.
type user struct {
	uid  types.UID
	item string
}

func userOf(c observe.Component) user { return user{c.UID, c.Item} }

// targets are those of one node.
type targets struct {
	mu    sync.Mutex
	pools map[cluster.Cluster]*clusters.Pool
	by    map[targetKey]*target
	// ids are those of the clusters of the operator that were asked for.
	ids map[cluster.Cluster]string
}

type targetKey struct {
	home cluster.Cluster
	// id identifies the clusters.Cluster. One that was dropped from its pool and made anew has the same.
	id string
}

// selectCluster finds the cluster that the component is deployed to, with the identity to use there. It fails if that
// cluster does not answer.
func (r *request[T]) selectCluster(ctx context.Context) error {
	identity, err := r.identity(ctx)
	if err != nil {
		return err
	}
	target, err := r.targetFor(ctx, identity)
	if err != nil {
		return err
	}
	// The component counts as a user of the target, so this comes before anything that may fail.
	if !r.dryRun && r.state.target != target {
		r.state.moveTo(&r.targets, target, r.owner)
	}
	if err := r.identifyOwner(ctx, target.server != ""); err != nil {
		return err
	}
	r.target, r.kubeconfig = target, identity.KubeConfig
	if r.store, err = r.inventoryStore(); err != nil {
		return err
	}
	if target.reachability != nil {
		if err := target.reachability.Check(ctx); err != nil {
			return err
		}
	}
	if err := r.verifyServer(ctx); err != nil {
		return err
	}
	if !r.dryRun {
		r.state.kubeconfig = identity.KubeConfig
	}
	return nil
}

// verifyServer makes sure that the objects are where the component is deployed to. Another API server than before must
// have one of them: in another cluster, all would look as if they were gone.
func (r *request[T]) verifyServer(ctx context.Context) error {
	server := r.target.server
	if r.status.Target == server {
		return nil
	}
	records, err := r.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("unable to load the inventory: %w", err)
	}
	asked := 0
	for i := range records {
		record := &records[i]
		if record.UID == "" || record.Phase == apis.PhaseCompleted {
			continue
		}
		found := &metav1.PartialObjectMetadata{}
		kind := schema.GroupVersionKind{Group: record.Group, Version: record.Version, Kind: record.Kind}
		found.SetGroupVersionKind(kind)
		key := types.NamespacedName{Namespace: record.Namespace, Name: record.Name}
		err := r.target.client.Get(ctx, key, found)
		switch {
		case err == nil && found.UID == record.UID:
			r.status.Target = server
			return nil
		case err != nil && !apierrs.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("unable to find out whether the objects are in the cluster: %w", err)
		}
		if asked++; asked == maxLookedFor {
			break
		}
	}
	if asked > 0 {
		return errElsewhere
	}
	r.status.Target = server
	return nil
}

// maxLookedFor is how many objects are looked for in a cluster that may be another one.
const maxLookedFor = 20

var errElsewhere = errors.New("the objects are in another cluster than the one that the component " +
	"is to be deployed to now: it stays as it is until the former cluster is named again")

var errNoCluster = errors.New("a kubeconfig or an impersonation needs a config that was made by NewConfig")

func (r *request[T]) targetFor(ctx context.Context, identity clusters.Identity) (*target, error) {
	own := len(identity.KubeConfig) == 0 && identity.User == "" && len(identity.Groups) == 0
	if r.config.Cluster() == nil {
		if !own {
			return nil, permanent(errNoCluster)
		}
		direct := r.direct(r.config.Client, r.config.Discovery)
		direct.inMemory = true
		return direct, nil
	}
	reached, err := r.targets.poolFor(r.config.Cluster(), r.RequestTimeout, r.generatorScheme).Get(ctx, identity)
	if err != nil {
		return nil, &unusableError{fmt.Errorf("unable to reach %s: %w", r.clusterName(), err)}
	}
	server := ""
	if len(identity.KubeConfig) > 0 {
		server = serverOf(reached)
	}
	if r.dryRun || !r.source.running() {
		return r.unshared(reached, server), nil
	}
	key := targetKey{r.config.Cluster(), reached.ID}
	return r.targets.get(key, r.owner, func() (*target, error) {
		if !r.source.running() {
			// The controller stopped meanwhile, so the watches would never be stopped.
			return r.unshared(reached, server), nil
		}
		made, err := r.watching(reached, server)
		if err == nil {
			reconcilers.Note(ctx, Watching{size: made.size, kinds: made.kinds})
		}
		return made, err
	})
}

// serverOf identifies an API server by where it is, without showing that.
func serverOf(reached *clusters.Cluster) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(reached.Config.Host, "/") + reached.Config.APIPath))
	return hex.EncodeToString(sum[:8])
}

// direct is a target without watches, for a controller that was not set up, and for tests.
func (r *request[T]) direct(c client.Client, d discovery.DiscoveryInterface) *target {
	return &target{
		client:    c,
		discovery: d,
		observer:  observe.NewDirect(c, r.Prefix, r.FieldManager, readiness.Of),
		unwatched: true,
	}
}

// unshared is a direct target to a cluster of the pool.
func (r *request[T]) unshared(reached *clusters.Cluster, server string) *target {
	direct := r.direct(reached.Client, reached.Discovery())
	direct.fresh, direct.server, direct.reachability = reached.FreshClient, server, reached.Reachability
	return direct
}

// watching is a target whose watches wake the resources.
func (r *request[T]) watching(reached *clusters.Cluster, server string) (*target, error) {
	watching, err := observe.NewWatching(observe.Options{
		Config:       reached.Config,
		HTTPClient:   reached.HTTPClient,
		Mapper:       reached.Client.RESTMapper(),
		Client:       reached.Client,
		Prefix:       r.Prefix,
		FieldManager: r.FieldManager,
		Evaluate:     readiness.Of,
		Wake:         r.source.wake,
	})
	if err != nil {
		return nil, err
	}
	made := &target{
		client:       reached.Client,
		discovery:    reached.Discovery(),
		fresh:        reached.FreshClient,
		observer:     watching,
		size:         watching.Size,
		kinds:        watching.Kinds,
		server:       server,
		reachability: reached.Reachability,
		users:        map[user]types.NamespacedName{},
	}
	silence := reached.Reachability.Listen(func() {
		for _, user := range r.targets.usersOf(made) {
			r.source.wake(user, true)
		}
	})
	made.stop = func() {
		silence()
		watching.Stop()
	}
	return made, nil
}

// usersOf returns the resources to wake when a cluster stops answering, or answers again.
func (t *targets) usersOf(of *target) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(of.users))
}

func (t *targets) poolFor(home cluster.Cluster, timeout time.Duration, generator *runtime.Scheme) *clusters.Pool {
	t.mu.Lock()
	defer t.mu.Unlock()
	pool, ok := t.pools[home]
	if !ok {
		if t.pools == nil {
			t.pools = map[cluster.Cluster]*clusters.Pool{}
		}
		pool = &clusters.Pool{Home: home.GetConfig(), Timeout: timeout, Schemes: []*runtime.Scheme{home.GetScheme()}}
		if generator != nil {
			pool.Schemes = append(pool.Schemes, generator)
		}
		t.pools[home] = pool
	}
	return pool
}

// get returns the target for key, which the component uses from here on, and so cannot be stopped by another that
// leaves it.
func (t *targets) get(
	key targetKey, user observe.Component, empty func() (*target, error),
) (*target, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.by[key]; ok {
		known.users[userOf(user)] = user.Watcher
		return known, nil
	}
	if t.by == nil {
		t.by = map[targetKey]*target{}
	}
	made, err := empty()
	if err != nil || made.users == nil {
		return made, err
	}
	made.users[userOf(user)] = user.Watcher
	t.by[key] = made
	return made, nil
}

// leave ends the interest of a component in what is at a target. Without any component, nothing is watched there.
func (t *targets) leave(left *target, user observe.Component) {
	left.observer.Release(user)
	if left.users == nil {
		return
	}
	t.mu.Lock()
	delete(left.users, userOf(user))
	unused := len(left.users) == 0
	if unused {
		maps.DeleteFunc(t.by, func(_ targetKey, known *target) bool { return known == left })
	}
	t.mu.Unlock()
	if unused {
		left.stop()
	}
}

// moveTo notes that the component is deployed at to from now on, and ends its interest in the former cluster.
func (s *resourceState) moveTo(all *targets, to *target, owner observe.Component) {
	sameCluster := s.target != nil && s.target.server == to.server
	_ = s.Close() // always nil
	s.engine.Move(sameCluster)
	s.target = to
	s.release = func() { all.leave(to, owner) }
}

// Close is called when the resource is gone. It never fails.
func (s *resourceState) Close() error {
	if s.release != nil {
		s.release()
	}
	s.release, s.target = nil, nil
	return nil
}

// stop stops everything, when the controller stops.
func (t *targets) stop() {
	t.mu.Lock()
	running := t.by
	t.by = nil
	t.mu.Unlock()
	for _, target := range running {
		target.stop()
	}
}

// namespaced asks the cluster whether a kind is namespaced.
func (t *target) namespaced(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	var groupMissing *discovery.ErrGroupDiscoveryFailed
	mapping, err := t.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err), errors.As(err, &groupMissing):
		known := t.inMemory && t.client.Scheme().Recognizes(kind)
		return known && !clusterScoped.Has(kind.Kind), known, nil
	case err != nil:
		return false, false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}

// clusterScoped are the kinds of client-go's scheme that are in no namespace, for a client in memory, which has no REST
// mapper.
var clusterScoped = sets.New(
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "CSINode",
	"CustomResourceDefinition", "IngressClass", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume",
	"PriorityClass", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ValidatingWebhookConfiguration", "VolumeAttachment",
)
