package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
)

const (
	// ring is the name of the ring of the replicas.
	ring = "demo-shop-operator"

	one, two, three = "replica-1", "replica-2", "replica-3"

	// count is the number of shops, and children that of their Deployments and Services.
	count, children = 12, 24

	newImage = "example.com/shop:2"

	// A killed replica is noticed when its Lease has expired for its duration.
	leaseDuration, renewDeadline, retryPeriod = 10 * time.Second, 8 * time.Second, 200 * time.Millisecond

	// syncPeriod is how often a sharder that the API server cannot call assigns shops.
	syncPeriod = time.Second
)

// replicas has the cluster, the replicas, and what the steps know of them. What runs as the operator is the sharder,
// with the replicas that are added to it.
type replicas struct {
	demo.Scenario
	hosts   registry.Memory
	manager manager.Manager
	// kill has a function for each replica that ends it as if its process were killed: it does not release its Lease.
	kill map[string]func()
	// placed has the replica of each shop as a check has last found it, and before as it was in the step before.
	placed, before map[string]string
	// remembered are the children of the shops as they were made at first.
	remembered map[types.UID]bool
}

// Replicas is the demo of an operator whose replicas share its resources.
var Replicas = demo.Demo{
	Title: "An operator for shops, of which several replicas work", Users: []string{OperatorUser}, Open: OpenReplicas,
}

// OpenReplicas installs the definitions of the Shop and of the ControllerRing, the ring, and the roles of the operator.
// Nothing that is there already is changed: it is an error.
func OpenReplicas(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	s := &replicas{Scenario: demo.Scenario{Options: options}, kill: map[string]func(){}}
	leases := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ring + "-leases"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			Verbs: []string{"get", "create", "update"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: leases.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: leases.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}},
	}
	err := open(ctx, &s.Scenario, demo.Installation{
		Definitions: []*apiextensionsv1.CustomResourceDefinition{sharder.Definition()},
		Objects:     []client.Object{leases, binding},
	}, s.installRing)
	if err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

// installRing creates what is derived from the tree: the ring, and the roles of the sharder and of the shards.
func (s *replicas) installRing(ctx context.Context) error {
	g := manifests.Generator{Scheme: s.Client.Scheme(), Mapper: s.Client.RESTMapper()}
	files, err := g.Ring(ring, controller.New(reconcilers.Config{}, &s.hosts, 0).Describe())
	if err != nil {
		return err
	}
	for _, file := range []string{manifests.RingFile, manifests.SharderRoleFile} {
		for manifest := range strings.SplitSeq(string(files[file]), "\n---\n") {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
				return err
			}
			if err := s.Creates(obj)(ctx); err != nil {
				return fmt.Errorf("unable to install the ring: %w", err)
			}
		}
	}
	return s.Creates(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ring + "-shard"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ring + "-shard"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}},
	})(ctx)
}

// steps is the whole scenario.
func (s *replicas) steps() []demo.Step {
	return []demo.Step{
		demo.When("Two replicas of the operator start, and join a ring",
			s.startSharder, s.starts(one), s.starts(two)).
			See("each holds a Lease, so both work", s.areReady(one, two)),
		demo.When(fmt.Sprintf("A user creates %d shops", count), s.Creates(shops()...)).
			See("each belongs to one replica", s.belongTo(one, two)).Showing(s.lines).
			See(fmt.Sprintf("each was reconciled: %d children exist", children), s.haveChildren(image)),
		demo.When("A third replica joins", s.remembers, s.starts(three)).
			See("it got shops (→) of the others", s.belongTo(one, two, three)).Showing(s.lines),
		demo.When(two+" is killed: it does not release its Lease", s.kills(two)).
			See("its Lease expires, and its shops (→) move", s.belongTo(one, three)).Showing(s.lines),
		demo.When("The user asks for another image, in all shops", s.setsImages).
			See("each was reconciled again", s.haveChildren(newImage)).
			See(fmt.Sprintf("the %d children are those of before: none was created twice", children), s.areRemembered),
		demo.When("The user deletes the shops", s.Deletes(shops()...)).
			See("they are gone, and their hosts are free", s.Gone(shops()...), s.hostsAreFree),
	}
}

// shops returns new shops. They have no pods, so that nothing has to run in the cluster.
func shops() []client.Object {
	var all []client.Object
	for i := range count {
		name := fmt.Sprintf("shop-%02d", i+1)
		all = append(all, newDry(name, name+".example.com", 0))
	}
	return all
}

// startSharder starts the stand-in of the sharder.
func (s *replicas) startSharder(ctx context.Context) error {
	hooks, err := webhookserver.New()
	if err != nil {
		return err
	}
	options := demo.ManagerOptions(s.Client.Scheme(), s.Logger)
	options.WebhookServer = hooks
	if s.manager, err = manager.New(s.Admin, options); err != nil {
		return fmt.Errorf("unable to make the manager of the sharder: %w", err)
	}
	of := sharder.Options{Webhook: hooks.Mutating("", webhookserver.Hook{}).Webhooks[0].ClientConfig}
	if !s.Webhooks {
		of.SyncPeriod = syncPeriod
	}
	stand, err := sharder.New(s.manager, of)
	if err != nil {
		return err
	}
	s.manager.GetWebhookServer().Register(sharder.WebhookPath, stand.Webhook())
	s.Operator.Start(ctx, s.manager)
	return nil
}

// starts sets up a replica, as the main.go of a sharded operator does, and lets it run. Each has a manager of its own,
// with its own cache and queue.
func (s *replicas) starts(name string) demo.Action {
	return func(ctx context.Context) error {
		var dead atomic.Bool // nothing that it sends arrives any more
		config := rest.CopyConfig(s.Users[OperatorUser])
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortal{next, &dead} })
		options := demo.ManagerOptions(s.Client.Scheme(), s.Logger)
		options.LeaderElectionNamespace = namespace
		options.LeaseDuration, options.RenewDeadline = new(leaseDuration), new(renewDeadline)
		options.RetryPeriod = new(retryPeriod)
		described := controller.New(reconcilers.Config{}, &s.hosts, hostRetry)
		shard, err := sharding.Ring{Name: ring, Shard: name}.Join(config, &options, described)
		if err != nil {
			return err
		}
		mgr, err := manager.New(config, options)
		if err != nil {
			return fmt.Errorf("unable to make the manager: %w", err)
		}
		mgr = shard.Manager(mgr)
		root := controller.New(espalier.NewConfig(mgr).WithShard(shard), &s.hosts, hostRetry)
		if err := root.SetupWithManager(ctx, mgr); err != nil {
			return fmt.Errorf("unable to set up the operator: %w", err)
		}
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.kill[name] = func() { dead.Store(true); stop() }
		return s.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
			context.AfterFunc(ctx, stop)
			if err := mgr.Start(running); err != nil && !dead.Load() {
				return fmt.Errorf("%s failed: %w", name, err)
			}
			return nil
		}))
	}
}

// mortal is the transport of a replica that may be dead.
type mortal struct {
	next http.RoundTripper
	dead *atomic.Bool
}

var errDead = errors.New("the replica was killed")

// RoundTrip implements [http.RoundTripper].
func (m mortal) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.next.RoundTrip(req)
}

func (s *replicas) kills(name string) demo.Action {
	return func(context.Context) error {
		s.kill[name]()
		return nil
	}
}

func (s *replicas) setsImages(ctx context.Context) error {
	for _, shop := range shops() {
		if err := s.Patches(shop, fmt.Sprintf(`{"spec":{"image":%q}}`, newImage))(ctx); err != nil {
			return err
		}
	}
	return nil
}
