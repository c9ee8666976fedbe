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

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// deployment is a cluster as seen with one identity, and the observer of what is there. The components that are
// deployed there with that identity share it.
type deployment struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	// fresh makes a client whose requests have a connection each; nil if there is none.
	fresh    func() (client.Client, error)
	observer observe.Observer
	// target identifies the API server. It is empty for the cluster of the operator.
	target string
	// reachability is nil for the cluster of the operator.
	reachability *clusters.Reachability
	// unwatched is true if no watch wakes the components. They are then requeued after a delay.
	unwatched bool
	// inMemory is true if the client may be one in memory, without a REST mapper that knows kinds. The scheme then says
	// which kinds there are.
	inMemory bool
	// users are the components that are deployed here, by the UIDs of their resources; nil if it is not shared.
	users map[types.UID]types.NamespacedName
	// stop ends the watches of a shared deployment.
	stop func()
}

// deployments are those of one node.
type deployments struct {
	mu    sync.Mutex
	pools map[cluster.Cluster]*clusters.Pool
	by    map[deploymentKey]*deployment
	// ids are those of the clusters of the operator that were asked for.
	ids map[cluster.Cluster]string
}

type deploymentKey struct {
	home cluster.Cluster
	// id identifies the clusters.Cluster. One that was dropped from its pool and made anew has the same.
	id string
}

// selectCluster finds the cluster that the component is deployed to, with the identity to use there. It fails if that
// cluster does not answer.
func (j *job[T]) selectCluster(ctx context.Context) error {
	deployment, err := j.deploymentFor(ctx)
	if err != nil {
		return err
	}
	// The component counts as a user of the deployment, so this comes before anything that may fail.
	if !j.dryRun && j.state.deployment != deployment {
		j.state.moveTo(&j.deployments, deployment, j.owner)
	}
	if err := j.identifyOwner(ctx, deployment.target != ""); err != nil {
		return err
	}
	j.deployment = deployment
	if j.store, err = j.inventoryStore(); err != nil {
		return err
	}
	if deployment.reachability != nil {
		if err := deployment.reachability.Check(ctx); err != nil {
			return err
		}
	}
	return j.verifyTarget(ctx)
}

// verifyTarget makes sure that the objects are where the component is deployed to. Another API server than before must
// have one of them: in another cluster, all would look as if they were gone.
func (j *job[T]) verifyTarget(ctx context.Context) error {
	target := j.deployment.target
	if j.status.Target == target {
		return nil
	}
	records, err := j.store.Load(ctx)
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
		err := j.deployment.client.Get(ctx, key, found)
		switch {
		case err == nil && found.UID == record.UID:
			j.status.Target = target
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
	j.status.Target = target
	return nil
}

// maxLookedFor is how many objects are looked for in a cluster that may be another one.
const maxLookedFor = 20

var errElsewhere = errors.New("the objects are in another cluster than the one that the component " +
	"is to be deployed to now: it stays as it is until the former cluster is named again")

var errNoCluster = errors.New("a kubeconfig or an impersonation needs a config that was made by NewConfig")

func (j *job[T]) deploymentFor(ctx context.Context) (*deployment, error) {
	identity, err := j.identity(ctx)
	if err != nil {
		return nil, err
	}
	own := len(identity.KubeConfig) == 0 && identity.User == "" && len(identity.Groups) == 0
	if j.config.Cluster() == nil {
		if !own {
			return nil, permanent(errNoCluster)
		}
		direct := j.direct(j.config.Client, j.config.Discovery)
		direct.inMemory = true
		return direct, nil
	}
	reached, err := j.deployments.poolFor(j.config.Cluster(), j.RequestTimeout).Get(ctx, identity)
	if err != nil {
		return nil, &unusableError{fmt.Errorf("unable to reach %s: %w", j.clusterName(), err)}
	}
	target := ""
	if len(identity.KubeConfig) > 0 {
		target = targetOf(reached)
	}
	if j.dryRun || !j.source.running() {
		return j.unshared(reached, target), nil
	}
	key := deploymentKey{j.config.Cluster(), reached.ID}
	return j.deployments.get(key, j.owner, func() (*deployment, error) {
		if !j.source.running() {
			// The controller stopped meanwhile, so the watches would never be stopped.
			return j.unshared(reached, target), nil
		}
		return j.watching(reached, target)
	})
}

// targetOf identifies an API server by where it is, without showing that.
func targetOf(reached *clusters.Cluster) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(reached.Config.Host, "/") + reached.Config.APIPath))
	return hex.EncodeToString(sum[:8])
}

// direct is a deployment without watches, for a controller that was not set up, and for tests.
func (j *job[T]) direct(c client.Client, d discovery.DiscoveryInterface) *deployment {
	return &deployment{
		client:    c,
		discovery: d,
		observer:  observe.NewDirect(c, j.Prefix, j.FieldManager, readiness.Of),
		unwatched: true,
	}
}

// unshared is a direct deployment to a cluster of the pool.
func (j *job[T]) unshared(reached *clusters.Cluster, target string) *deployment {
	direct := j.direct(reached.Client, reached.Discovery())
	direct.fresh, direct.target, direct.reachability = reached.FreshClient, target, reached.Reachability
	return direct
}

// watching is a deployment whose watches wake the resources.
func (j *job[T]) watching(reached *clusters.Cluster, target string) (*deployment, error) {
	watching, err := observe.NewWatching(observe.Options{
		Config:       reached.Config,
		HTTPClient:   reached.HTTPClient,
		Mapper:       reached.Client.RESTMapper(),
		Client:       reached.Client,
		Prefix:       j.Prefix,
		FieldManager: j.FieldManager,
		Evaluate:     readiness.Of,
		Wake:         j.source.wake,
	})
	if err != nil {
		return nil, err
	}
	made := &deployment{
		client:       reached.Client,
		discovery:    reached.Discovery(),
		fresh:        reached.FreshClient,
		observer:     watching,
		target:       target,
		reachability: reached.Reachability,
		users:        map[types.UID]types.NamespacedName{},
	}
	silence := reached.Reachability.Listen(func() {
		for _, user := range j.deployments.usersOf(made) {
			j.source.wake(user, true)
		}
	})
	made.stop = func() {
		silence()
		watching.Stop()
	}
	return made, nil
}

// usersOf returns the resources to wake when a cluster stops answering, or answers again.
func (d *deployments) usersOf(of *deployment) []types.NamespacedName {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(of.users))
}

func (d *deployments) poolFor(home cluster.Cluster, timeout time.Duration) *clusters.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	pool, ok := d.pools[home]
	if !ok {
		if d.pools == nil {
			d.pools = map[cluster.Cluster]*clusters.Pool{}
		}
		pool = &clusters.Pool{Home: home.GetConfig(), Timeout: timeout}
		d.pools[home] = pool
	}
	return pool
}

// get returns the deployment for key, which the component uses from here on, and so cannot be stopped by another that
// leaves it.
func (d *deployments) get(
	key deploymentKey, user observe.Component, empty func() (*deployment, error),
) (*deployment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.by[key]; ok {
		known.users[user.UID] = user.Watcher
		return known, nil
	}
	if d.by == nil {
		d.by = map[deploymentKey]*deployment{}
	}
	made, err := empty()
	if err != nil || made.users == nil {
		return made, err
	}
	made.users[user.UID] = user.Watcher
	d.by[key] = made
	return made, nil
}

// leave ends the interest of a component in what is at a deployment. Without any component, nothing is watched there.
func (d *deployments) leave(left *deployment, user observe.Component) {
	left.observer.Release(user)
	if left.users == nil {
		return
	}
	d.mu.Lock()
	delete(left.users, user.UID)
	unused := len(left.users) == 0
	if unused {
		maps.DeleteFunc(d.by, func(_ deploymentKey, known *deployment) bool { return known == left })
	}
	d.mu.Unlock()
	if unused {
		left.stop()
	}
}

// moveTo notes that the component is deployed at to from now on, and ends its interest in the former cluster.
func (s *resourceState) moveTo(all *deployments, to *deployment, owner observe.Component) {
	sameCluster := s.deployment != nil && s.deployment.target == to.target
	_ = s.Close() // always nil
	s.engine.Move(sameCluster)
	s.deployment = to
	s.release = func() { all.leave(to, owner) }
}

// Close is called when the resource is gone. It never fails.
func (s *resourceState) Close() error {
	if s.release != nil {
		s.release()
	}
	s.release, s.deployment = nil, nil
	return nil
}

// stop stops everything, when the controller stops.
func (d *deployments) stop() {
	d.mu.Lock()
	running := d.by
	d.by = nil
	d.mu.Unlock()
	for _, deployment := range running {
		deployment.stop()
	}
}

// namespaced asks the cluster whether a kind is namespaced.
func (d *deployment) namespaced(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	var groupMissing *discovery.ErrGroupDiscoveryFailed
	mapping, err := d.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err), errors.As(err, &groupMissing):
		known := d.inMemory && d.client.Scheme().Recognizes(kind)
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
