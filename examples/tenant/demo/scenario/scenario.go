// Package scenario shows what the operator for tenants does, step by step, on a real cluster, and checks it. The steps
// are data, so that a test can play the same scenario under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/config"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

const (
	// OperatorUser is the name of the user that the operator is.
	OperatorUser = "tenant-operator"
	// HubUser is the name of the user that the operator is on the hub, where the defaults are. The cluster of the
	// scenario is the hub, too.
	HubUser = "tenant-operator-hub"

	// platform is the namespace of the administrators. It has the ConfigMap of defaults, and the list of tenants.
	platform = "demo-platform"

	// directoryInterval is how long the operator waits for a directory that does not answer.
	directoryInterval = 500 * time.Millisecond
)

// scenario has the cluster, the directory, the operator once it runs, and what the steps know of them.
type scenario struct {
	demo.Scenario
	directory directory.Memory
	// webhooks is where the API server can call the webhooks; nil if they are not served.
	webhooks *webhookserver.Server
	// hubRequests are those of the operator to the hub.
	hubRequests *controlplane.Requests
	trees       string
	warnings    warnings
	// answers are what the API server has answered to dry runs.
	answers []string
	// reconciles is how often each tenant was reconciled before something was done.
	reconciles map[string]int
}

// Demo is the demo of the operator for tenants.
var Demo = demo.Demo{
	Title:  "An operator for tenants",
	Users:  []string{OperatorUser, HubUser},
	Open:   Open,
	Trials: trials,
}

// Open installs the definition of the Tenant, the roles of the operator, and the defaults of tenants. Nothing that is
// there already is changed: it is an error.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	s := &scenario{}
	options.Admin = rest.CopyConfig(options.Admin)
	options.Admin.WarningHandler = &s.warnings
	s.Options = options
	s.CleanUp = s.namespacesGone
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
	roles, err := config.Roles()
	if err != nil {
		return err
	}
	hub, err := config.HubRole()
	if err != nil {
		return err
	}
	registry, err := config.RegistryRole()
	if err != nil {
		return err
	}
	registry.Namespace = platform
	binding := &rbacv1.RoleBinding{
		ObjectMeta: registry.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: registry.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}},
	}
	err = errors.Join(s.Create(ctx, crd, namespaceOf(platform), newDefaults(), registry, binding),
		s.Grant(ctx, roles[0], OperatorUser), s.Grant(ctx, roles[1], OperatorUser), s.Grant(ctx, hub, HubUser))
	if err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	return demo.Eventually(ctx, demo.Patience, demo.All(
		s.May(OperatorUser, "list", v1alpha1.GroupVersion.Group, "tenants", demo.Everywhere),
		s.May(OperatorUser, "create", "", "configmaps", platform),
		s.May(HubUser, "list", "", "configmaps", demo.Everywhere),
		func(ctx context.Context) error { return s.Client.List(ctx, &v1alpha1.TenantList{}) },
	))
}

func newDefaults() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "defaults"},
		Data: map[string]string{
			"quota.requests.cpu": "4",
			"quota.pods":         "20",
			"limits.cpu":         "500m",
			"limits.memory":      "256Mi",
			"role.developer":     "edit",
			"role.guest":         "view",
		},
	}
}

// namespacesGone holds when no tenant has a namespace. Other namespaces stay.
func (s *scenario) namespacesGone(ctx context.Context) error {
	var list corev1.NamespaceList
	err := s.Client.List(ctx, &list, client.HasLabels{controller.TenantLabel})
	if err == nil && len(list.Items) > 0 {
		return fmt.Errorf("there is still the namespace %s", list.Items[0].Name)
	}
	return err
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	managerConfig, _ := s.Operator.Connect(s.Users[OperatorUser])
	options := demo.ManagerOptions(s.Client.Scheme(), s.Logger)
	if s.Webhooks {
		var err error
		if s.webhooks, err = webhookserver.New(); err != nil {
			return err
		}
		options.WebhookServer = s.webhooks
	}
	mgr, err := manager.New(managerConfig, options)
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	var hubConfig *rest.Config
	hubConfig, s.hubRequests = s.Operator.Connect(s.Users[HubUser])
	hub, err := cluster.New(hubConfig, func(options *cluster.Options) {
		options.Scheme, options.Logger = s.Client.Scheme(), s.Logger
	})
	if err != nil {
		return fmt.Errorf("unable to connect to the hub: %w", err)
	}
	if err := errors.Join(mgr.Add(hub), s.setUp(ctx, mgr, hub)); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}

// setUp has the manager run the two roots, and serve the webhooks if it can.
func (s *scenario) setUp(ctx context.Context, mgr manager.Manager, hub cluster.Cluster) error {
	options := controller.Options{
		Directory:         &s.directory,
		DirectoryInterval: directoryInterval,
		DefaultsCluster:   hub,
		RegistryNamespace: platform,
	}
	config := reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, 10*time.Hour)
	tenants, registry := controller.New(config, options), controller.NewRegistry(config, options)
	tenants.AfterReconcile = s.Operator.Count
	s.trees = tenants.Describe().String() + registry.Describe().String()
	if err := errors.Join(tenants.SetupWithManager(ctx, mgr), registry.SetupWithManager(ctx, mgr)); err != nil {
		return err
	}
	if s.webhooks == nil {
		return nil
	}
	return controller.SetupWebhooks(ctx, mgr.GetWebhookServer(), options)
}
