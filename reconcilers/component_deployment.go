package reconcilers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/clusters"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	corev1 "k8s.io/api/core/v1"
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

// componentDeployment is a cluster as seen with one identity, and who tells what is there. The components that are deployed there with
// that identity share it.
type componentDeployment struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	observer  observe.Observer
	// target identifies the API server; empty for that of the operator.
	target string
	// blind: nobody tells when something changes, so components have to come back.
	blind bool
	// guess: the client may be one in memory, without a REST mapper that knows kinds. The scheme then tells which there are.
	guess bool
	// stop ends what runs in the background; nil if nothing does.
	stop func()
	// users are the components that are deployed here, by the UIDs of their resources.
	users map[types.UID]bool
}

// componentDeployments are those of one node.
type componentDeployments struct {
	mu    sync.Mutex
	pools map[cluster.Cluster]*clusters.Pool
	by    map[deploymentKey]*componentDeployment
}

type deploymentKey struct {
	home cluster.Cluster
	// id is that of the clusters.Cluster: one that was dropped from its pool and made anew has the same.
	id string
}

// reach finds the cluster that the component is deployed to, with the identity to use there.
func (j *componentJob[T]) reach(ctx context.Context) error {
	deployment, err := j.deploymentFor(ctx)
	if err != nil {
		return err
	}
	if !j.dryRun {
		j.memory.moveTo(&j.deployments, deployment, j.resource.GetUID(), j.component(ctx))
	}
	j.deployment = deployment
	if j.store, err = j.inventoryStore(); err != nil {
		return err
	}
	return j.stay(ctx)
}

// stay makes sure that the objects are where the component is deployed to. If it is another API server than before, it has to have
// one of them: of another cluster, all would look as if they were gone.
func (j *componentJob[T]) stay(ctx context.Context) error {
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
		found.SetGroupVersionKind(schema.GroupVersionKind{Group: record.Group, Version: record.Version, Kind: record.Kind})
		key := types.NamespacedName{Namespace: record.Namespace, Name: record.Name}
		err := j.deployment.client.Get(ctx, key, found)
		switch {
		case err == nil && found.UID == record.UID:
			j.status.Target = target
			return nil
		case err != nil && !apierrs.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("unable to find out whether the objects are in the cluster: %w", err)
		}
		if asked++; asked == mostAsked {
			break
		}
	}
	if asked > 0 {
		return errElsewhere
	}
	j.status.Target = target
	return nil
}

// mostAsked is how many objects are looked for in a cluster that may be another one.
const mostAsked = 20

var errElsewhere = errors.New("the objects are in another cluster than the one that the component is to be deployed to now: " +
	"it stays as it is until the former cluster is named again")

func (j *componentJob[T]) deploymentFor(ctx context.Context) (*componentDeployment, error) {
	identity, err := j.identity(ctx)
	if err != nil {
		return nil, err
	}
	own := len(identity.KubeConfig) == 0 && identity.User == "" && len(identity.Groups) == 0
	if j.config.home == nil {
		if !own {
			return nil, fmt.Errorf("a kubeconfig or an impersonation needs a config that was made by NewConfig: %w", ErrDurable)
		}
		direct := j.direct(j.config.Client, j.config.Discovery)
		direct.guess = true
		return direct, nil
	}
	reached, err := j.deployments.poolFor(j.config.home).Get(ctx, identity)
	if err != nil {
		return nil, fmt.Errorf("unable to reach the cluster of the component: %w", err)
	}
	remote := len(identity.KubeConfig) > 0
	if j.dryRun || !j.waker.serving() {
		return j.directly(reached, remote), nil
	}
	return j.deployments.get(deploymentKey{j.config.home, reached.ID}, j.resource.GetUID(), func() (*componentDeployment, error) {
		if !j.waker.serving() {
			// The controller stopped meanwhile: nobody would stop the watches.
			return j.directly(reached, remote), nil
		}
		return j.watching(reached, remote)
	})
}

func (j *componentJob[T]) directly(reached *clusters.Cluster, remote bool) *componentDeployment {
	deployment := j.direct(reached.Client, reached.Discovery())
	deployment.target = targetOf(reached, remote)
	return deployment
}

// targetOf identifies an API server by where it is, without showing that.
func targetOf(reached *clusters.Cluster, remote bool) string {
	if !remote {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(reached.Config.Host, "/") + reached.Config.APIPath))
	return hex.EncodeToString(sum[:8])
}

// direct is a deployment without watches, for a controller that was not set up, and for tests.
func (j *componentJob[T]) direct(c client.Client, d discovery.DiscoveryInterface) *componentDeployment {
	return &componentDeployment{
		client:    c,
		discovery: d,
		observer:  observe.NewDirect(c, j.Prefix, j.FieldManager, readiness.Of),
		blind:     true,
	}
}

// watching is a deployment whose watches wake the resources.
func (j *componentJob[T]) watching(reached *clusters.Cluster, remote bool) (*componentDeployment, error) {
	watching, err := observe.NewWatching(observe.Options{
		Config:       reached.Config,
		HTTPClient:   reached.HTTPClient,
		Mapper:       reached.Client.RESTMapper(),
		Client:       reached.Client,
		Prefix:       j.Prefix,
		FieldManager: j.FieldManager,
		Evaluate:     readiness.Of,
		Wake:         j.waker.wake,
	})
	if err != nil {
		return nil, err
	}
	return &componentDeployment{
		client:    reached.Client,
		discovery: reached.Discovery(),
		observer:  watching,
		target:    targetOf(reached, remote),
		stop:      watching.Stop,
		users:     map[types.UID]bool{},
	}, nil
}

func (d *componentDeployments) poolFor(home cluster.Cluster) *clusters.Pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	pool, ok := d.pools[home]
	if !ok {
		if d.pools == nil {
			d.pools = map[cluster.Cluster]*clusters.Pool{}
		}
		pool = &clusters.Pool{Home: home.GetConfig()}
		d.pools[home] = pool
	}
	return pool
}

// get returns the deployment for key, which the component of that UID uses from here on, and so cannot be stopped by another that leaves
// it.
func (d *componentDeployments) get(key deploymentKey, user types.UID, empty func() (*componentDeployment, error)) (*componentDeployment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.by[key]; ok {
		known.users[user] = true
		return known, nil
	}
	if d.by == nil {
		d.by = map[deploymentKey]*componentDeployment{}
	}
	made, err := empty()
	if err != nil || made.users == nil {
		return made, err
	}
	made.users[user] = true
	d.by[key] = made
	return made, nil
}

// leave ends the interest of a component in what is at deployment. Without any component, nothing is watched there.
func (d *componentDeployments) leave(deployment *componentDeployment, user types.UID, of observe.Component) {
	deployment.observer.Release(of)
	if deployment.users == nil {
		return
	}
	d.mu.Lock()
	delete(deployment.users, user)
	unused := len(deployment.users) == 0
	if unused {
		for key, known := range d.by {
			if known == deployment {
				delete(d.by, key)
			}
		}
	}
	d.mu.Unlock()
	if unused && deployment.stop != nil {
		deployment.stop()
	}
}

// end stops everything, when the controller stops.
func (d *componentDeployments) end() {
	d.mu.Lock()
	running := d.by
	d.by = nil
	d.mu.Unlock()
	for _, deployment := range running {
		if deployment.stop != nil {
			deployment.stop()
		}
	}
}

// identity is where and as whom the component is deployed.
func (j *componentJob[T]) identity(ctx context.Context) (clusters.Identity, error) {
	identity := clusters.Identity{
		KubeConfig: j.configuration.KubeConfig,
		User:       j.configuration.User,
		Groups:     slices.Clone(j.configuration.Groups),
	}
	reference := j.configuration.KubeConfigSecret
	if len(identity.KubeConfig) > 0 || reference == nil {
		return identity, nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: j.resource.GetNamespace(), Name: reference.Name}
	if err := j.config.TrackAndGet(ctx, key, secret); err != nil {
		if apierrs.IsNotFound(err) {
			return identity, j.missing(fmt.Errorf("the Secret %s of the kubeconfig is not there", key))
		}
		return identity, fmt.Errorf("unable to read the Secret %s of the kubeconfig: %w", key, err)
	}
	kubeconfig, err := reference.Value(secret.Data)
	if err != nil {
		return identity, j.missing(fmt.Errorf("the Secret %s has no kubeconfig: %w", key, err))
	}
	if len(bytes.TrimSpace(kubeconfig)) == 0 {
		// Without one, the component would be deployed to the cluster of the operator.
		return identity, j.missing(fmt.Errorf("the kubeconfig in the Secret %s is empty", key))
	}
	identity.KubeConfig = kubeconfig
	return identity, nil
}

// missingReferenceDelay is that of section 2.7 of the specification of the component engine.
const missingReferenceDelay = 10 * time.Second

// errAbandoned says that the objects of a component are given up, as the resource wants it.
var errAbandoned = errors.New("the cluster of the component is not known any more")

// missing is the error for a kubeconfig that is not there.
func (j *componentJob[T]) missing(err error) error {
	if j.situation.deleting && j.configuration.AbandonOnDeletion {
		return fmt.Errorf("%w: %w", errAbandoned, err)
	}
	delay := missingReferenceDelay
	return component.NewRetriableError(err, &delay)
}

// scopes tells which kinds are namespaced. It asks the cluster once for each.
func (d *componentDeployment) scopes() func(schema.GroupVersionKind) (namespaced, known bool, err error) {
	type scope struct{ namespaced, known bool }
	asked := map[schema.GroupVersionKind]scope{}
	return func(kind schema.GroupVersionKind) (bool, bool, error) {
		if s, ok := asked[kind]; ok {
			return s.namespaced, s.known, nil
		}
		mapping, err := d.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err), err != nil && isGroupMissing(err):
			s := scope{}
			if d.guess && d.client.Scheme().Recognizes(kind) {
				s = scope{namespaced: !clusterScoped.Has(kind.Kind), known: true}
			}
			asked[kind] = s
			return s.namespaced, s.known, nil
		case err != nil:
			return false, false, err
		}
		s := scope{namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace, known: true}
		asked[kind] = s
		return s.namespaced, true, nil
	}
}

// clusterScoped are the kinds of client-go's scheme that are in no namespace, for a client in memory, which does not know.
var clusterScoped = sets.New(
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "CSINode",
	"CustomResourceDefinition", "IngressClass", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume",
	"PriorityClass", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"ValidatingWebhookConfiguration", "VolumeAttachment",
)

func isGroupMissing(err error) bool {
	var failed *discovery.ErrGroupDiscoveryFailed
	return errors.As(err, &failed) || discovery.IsGroupDiscoveryFailedError(err)
}

// engage runs the engine and notes how far it came.
func (j *componentJob[T]) engage(ctx context.Context, task engine.Task) error {
	owner := j.component(ctx)
	machine := &engine.Engine{
		Client:   j.deployment.client,
		Observer: j.deployment.observer,
		Store:    j.store,
		Guard: &foreign.Guard{
			Client:       j.deployment.client,
			Discovery:    j.deployment.discovery,
			OwnerLabel:   j.Prefix + "/" + component.LabelOwnerID,
			OwnerID:      owner.OwnerID,
			FieldManager: j.FieldManager,
		},
		Memory:       &j.memory.engine,
		Component:    owner,
		Mark:         execute.Mark{Prefix: j.Prefix, ID: owner.OwnerID, Owner: owner.Owner},
		FieldManager: j.FieldManager,
		Reclaim:      j.ReclaimFrom,
		Parallel:     j.Parallel,
	}
	// What the request writes itself wakes nobody.
	defer j.deployment.observer.Pause(owner)()
	report, err := machine.Run(ctx, task)
	j.report = report
	j.situation.recorded = report.Recorded > 0
	// What is in the way has no labels of ours, so nobody watches it.
	report.Waits = report.Waits || inTheWay(report, plan.ObstacleNotOurs)
	j.situation.done = err == nil && report.Plan.Done && !j.situation.recorded
	j.situation.blocked = inTheWay(report, plan.ObstacleBlocked)
	j.situation.progress = plan.Message(report.Plan, componentMessageLimit-componentRemarkLimit)
	if !j.dryRun {
		j.waker.pace(owner.Watcher, len(report.Inventory))
	}
	if err == nil && j.memory.recordedInVain(j.situation.recorded) {
		return errInventoryLost
	}
	return err
}

// inTheWay tells whether an obstacle of the kind is left.
func inTheWay(report *engine.Report, kind plan.ObstacleKind) bool {
	return slices.ContainsFunc(report.Plan.Obstacles, func(o plan.Obstacle) bool { return o.Kind == kind })
}

// errInventoryLost says that the inventory never becomes durable.
var errInventoryLost = errors.New("the status does not keep the inventory: " +
	"the CustomResourceDefinition of the resource has to define the status of a component, and the root has to write it")

// componentRemarkLimit is how much room is left in a message for remarks about types that cannot be watched.
const componentRemarkLimit = 256

// component is on whose behalf the objects are.
func (j *componentJob[T]) component(ctx context.Context) observe.Component {
	kind := kindOf(j.config.Client, j.resource)
	text := engine.OwnerText(kind.GroupKind(), client.ObjectKeyFromObject(j.resource), j.resource.GetUID())
	return observe.Component{
		Watcher: j.watcher(ctx),
		UID:     j.resource.GetUID(),
		OwnerID: engine.OwnerID(text),
		Owner:   text,
		Now:     j.now,
	}
}
