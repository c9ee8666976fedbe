// Package scenario shows what the operator for shops does, step by step, on a real cluster, and checks it: alone, and
// with several replicas that share the shops. The steps are data, so that a test can play them under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "shop-operator"

// namespace has the shops.
const namespace = "demo-shops"

// hostRetry is how often a host is asked for that belongs to somebody else.
const hostRetry = time.Second

// scenario has the cluster, the registry of hosts, the operator once it runs, and what the steps know of them.
type scenario struct {
	demo.Scenario
	hosts registry.Memory
	tree  string
	// hooks is where the API server can call the webhooks; nil if they are not served.
	hooks    *webhookserver.Server
	warnings warnings
	// answers are what the API server has answered to dry runs.
	answers []string
	// checksum is what the pods had of the settings before these changed.
	checksum string
	// reconciles is how often the shop was reconciled before it was deleted.
	reconciles int
}

// Demo is the demo of the operator for shops.
var Demo = demo.Demo{Title: "An operator for shops", Users: []string{OperatorUser}, Open: Open, Trials: trials}

// Open installs the definition of the Shop, and the role of the operator. Nothing that is there already is changed: it
// is an error.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	s := &scenario{}
	options.Admin = rest.CopyConfig(options.Admin)
	options.Admin.WarningHandler = &s.warnings
	s.Options = options
	if err := open(ctx, &s.Scenario, demo.Installation{}); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

// open connects, installs the operator and more, and does what is left.
func open(ctx context.Context, s *demo.Scenario, more demo.Installation, rest ...demo.Action) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	crd, err := config.CRD()
	if err != nil {
		return err
	}
	role, err := config.Role()
	if err != nil {
		return err
	}
	more.User = OperatorUser
	more.Definitions = append(more.Definitions, crd)
	more.Roles = append(more.Roles, role)
	more.Objects = append([]client.Object{demo.Named[corev1.Namespace]("", namespace)}, more.Objects...)
	return s.Open(ctx, scheme, func(ctx context.Context) error {
		if err := s.Install(ctx, more); err != nil {
			return err
		}
		return demo.InOrder(rest...)(ctx)
	})
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	if s.Webhooks {
		var err error
		if s.hooks, err = webhookserver.New(); err != nil {
			return err
		}
	}
	mgr, err := s.NewManager(OperatorUser, func(options *manager.Options) {
		if s.hooks != nil {
			options.WebhookServer = s.hooks
		}
	})
	if err != nil {
		return err
	}
	root := controller.New(espalier.NewConfig(mgr), &s.hosts, hostRetry)
	root.AfterReconcile = s.Operator.Count
	s.tree = root.Describe().String()
	err = root.SetupWithManager(ctx, mgr)
	if s.hooks != nil {
		err = errors.Join(err, webhooks.SetUp(ctx, mgr.GetWebhookServer()))
	}
	if err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}

// trials are for a user who has kubectl, one after the other.
var trials = []demo.Trial{
	{
		Text: "Create a shop: it gets a Deployment, a Service, an Ingress and a CronJob",
		Commands: `kubectl apply -f - <<END
apiVersion: shop.example.com/v1
kind: Shop
metadata: {name: blue, namespace: default}
spec:
  image: example.com/shop:1
  host: Blue.example.com
  workers: [{name: mail, schedule: "0 4 * * *"}]
END
kubectl wait --for=condition=Registered shop/blue
kubectl get deployments,services,ingresses,cronjobs
`,
	},
	{
		Text:     "Look at the tree: each condition is of one of the nodes that the first step has shown",
		Commands: "kubectl describe shop blue\n",
	},
	{
		Text:     "Break it: delete what the shop has",
		Commands: "kubectl delete service/blue ingress/blue cronjob/blue-mail\n",
	},
	{
		Text: "See it healed: these are new, and there are events about it",
		Commands: `kubectl wait --for=create service/blue ingress/blue cronjob/blue-mail
kubectl get services,ingresses,cronjobs
kubectl events --for shop/blue
`,
	},
	{
		Text: "Block its deletion: the operator refuses it, until the shop is not protected any more",
		Commands: `kubectl annotate shop blue ` + webhooks.ProtectedAnnotation + `=true
kubectl delete shop blue
kubectl annotate shop blue ` + webhooks.ProtectedAnnotation + `-
kubectl delete shop blue
`,
	},
}
