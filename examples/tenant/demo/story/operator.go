package story

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

// operator is the operator as main.go of the example runs it, observed from outside: what it asks of the API servers,
// and how often it reconciles.
type operator struct {
	storytelling.Operator

	tree string
	// requests are those to the cluster of the tenants, hubRequests those to the hub.
	requests, hubRequests *controlplane.Requests
	// webhooks is where the API server can call the webhooks; nil if they are not served.
	webhooks *webhookserver.Server
}

// directoryInterval is how long the operator waits for a directory that does not answer.
const directoryInterval = 500 * time.Millisecond

// startOperator sets up the operator and lets it run.
func (w *World) startOperator(ctx context.Context) error {
	o := w.operator
	mgr, err := w.newManager(o)
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	hub, err := w.newHub(o)
	if err == nil {
		err = mgr.Add(hub)
	}
	if err != nil {
		return fmt.Errorf("unable to add the hub: %w", err)
	}
	options := controller.Options{
		Directory:         w.directory,
		DirectoryInterval: directoryInterval,
		DefaultsCluster:   hub,
		RegistryNamespace: platform,
	}
	if err := o.setUp(ctx, mgr, options); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}

	// It goes on while the tenants are removed.
	o.Start(ctx, mgr)
	return nil
}

func (w *World) newManager(o *operator) (manager.Manager, error) {
	var config *rest.Config
	config, o.requests = controlplane.CountRequests(w.options.Operator)
	options := storytelling.ManagerOptions(w.Client.Scheme(), w.options.Logger)
	if w.options.Webhooks {
		var err error
		if o.webhooks, err = webhookserver.New(); err != nil {
			return nil, err
		}
		options.WebhookServer = o.webhooks
	}
	return manager.New(config, options)
}

// newHub connects to the cluster a second time, as a user who may read ConfigMaps only.
func (w *World) newHub(o *operator) (cluster.Cluster, error) {
	var config *rest.Config
	config, o.hubRequests = controlplane.CountRequests(w.options.Hub)
	return cluster.New(config, func(options *cluster.Options) {
		options.Scheme = w.Client.Scheme()
		options.Logger = w.options.Logger
	})
}

// setUp has the manager run the two roots, and serve the webhooks if it can.
func (o *operator) setUp(ctx context.Context, mgr manager.Manager, options controller.Options) error {
	config := reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, 10*time.Hour)
	tenants := controller.New(config, options)
	tenants.AfterReconcile = o.count
	registry := controller.NewRegistry(config, options)
	o.tree = tenants.Describe().String() + registry.Describe().String()
	if err := tenants.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if err := registry.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	if o.webhooks == nil {
		return nil
	}
	return controller.SetupWebhooks(ctx, mgr.GetWebhookServer(), options)
}

// watchesHub returns nil once the operator hears of the defaults on the hub.
func (o *operator) watchesHub() error {
	if o.hubRequests.Watches() == 0 {
		return errors.New("the operator watches nothing on the hub")
	}
	return nil
}

// count is told of each reconcile that has ended.
func (o *operator) count(_ context.Context, request reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
	o.Count(request.Name)
	return result, err
}
