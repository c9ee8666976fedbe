// Package scenario shows how replicas of the operator for shops share the shops, step by step, on a real cluster, and
// checks it. The steps are data, so that a test can play the same scenario.
package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"
)

const (
	// OperatorUser is the name of the user that the operator is.
	OperatorUser = "shop-operator"

	// namespace has the shops, and the Leases of the replicas.
	namespace = "demo-shops"
	// ring is the name of the ring of the replicas.
	ring = "demo-shop-operator"
)

// scenario has the cluster, the replicas, and what the steps know of them. What runs as the operator is the sharder,
// with the replicas that are added to it.
type scenario struct {
	demo.Scenario
	hosts    registry.Memory
	manager  manager.Manager
	replicas map[string]*replica
	// placed has the replicas of the shops as a check has last found them, and before as they were in the step before.
	placed, before placement
	// remembered are the children of the shops as they were made at first.
	remembered map[types.UID]bool
}

// Demo is the demo of an operator whose replicas share its resources.
var Demo = demo.Demo{
	Title: "An operator for shops, of which several replicas work",
	Users: []string{OperatorUser},
	Open:  Open,
}

// Open installs the definitions of the Shop and of the ControllerRing, the ring, and the roles of the operator. Nothing
// that is there already is changed: it is an error.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	s := &scenario{Scenario: demo.Scenario{Options: options}, replicas: map[string]*replica{}}
	if err := s.Open(ctx, scheme, s.install); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

func (s *scenario) install(ctx context.Context) error {
	crd, err := config.CRD()
	if err != nil {
		return err
	}
	role, err := config.Role()
	if err != nil {
		return err
	}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	leases := leaseRole()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: leases.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: leases.Name},
		Subjects:   []rbacv1.Subject{theOperator()},
	}
	err = errors.Join(s.Create(ctx, crd, sharder.Definition(), home, leases, binding), s.Grant(ctx, role, OperatorUser))
	if err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	err = demo.Eventually(ctx, s.Patience, func(ctx context.Context) error {
		rings := &unstructured.UnstructuredList{}
		rings.SetGroupVersionKind(sharder.RingKind)
		return errors.Join(s.Client.List(ctx, &v1.ShopList{}), s.Client.List(ctx, rings))
	})
	if err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	if err := s.installRing(ctx); err != nil {
		return fmt.Errorf("unable to install the ring: %w", err)
	}
	return demo.Eventually(ctx, s.Patience, demo.All(
		s.May(OperatorUser, "patch", v1.GroupVersion.Group, "shops", demo.Everywhere),
		s.May(OperatorUser, "create", coordinationv1.GroupName, "leases", namespace),
	))
}

// installRing creates what is derived from the tree.
func (s *scenario) installRing(ctx context.Context) error {
	g := manifests.Generator{Scheme: s.Client.Scheme(), Mapper: s.Client.RESTMapper()}
	files, err := g.Ring(ring, controller.New(reconcilers.Config{}, &s.hosts, 0).Describe())
	if err != nil {
		return err
	}
	objects, err := decode(files[manifests.RingFile], files[manifests.SharderRoleFile])
	if err != nil {
		return err
	}
	name := ring + "-shard"
	return s.Create(ctx, append(objects, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{theOperator()},
	})...)
}

func theOperator() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}
}

// leaseRole lets each replica have its Lease.
func leaseRole() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo-shop-operator-leases"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			Verbs: []string{"get", "create", "update"},
		}},
	}
}

// decode returns the objects of manifests.
func decode(manifests ...[]byte) ([]client.Object, error) {
	var objects []client.Object
	for _, manifest := range manifests {
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
		for {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			objects = append(objects, obj)
		}
	}
	return objects, nil
}

// syncPeriod is how often a sharder that the API server cannot call assigns shops.
const syncPeriod = time.Second

// startSharder starts the stand-in of the sharder.
func (s *scenario) startSharder(ctx context.Context) error {
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
