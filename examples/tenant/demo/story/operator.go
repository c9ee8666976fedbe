package story

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/controlplane"
	"github.com/espalier-dev/espalier/internal/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/reconcilers"
)

// operator is the operator as main.go of the example runs it, observed from outside: what it asks of the API servers, and
// how often it reconciles.
type operator struct {
	tree string
	// requests are those to the cluster of the tenants, hubRequests those to the hub.
	requests, hubRequests *controlplane.Requests
	cache                 cache.Cache
	// webhooks is where the API server can call the webhooks; nil if they are not served.
	webhooks *webhookserver.Server
	cancel   context.CancelFunc
	done     chan struct{}
	// ended is the outcome, to be read when done is closed.
	ended error

	mu   sync.Mutex
	runs map[string]int
}

var errNotRunning = errors.New("the operator does not run")

// directoryInterval is how long the operator waits for a directory that does not answer.
const directoryInterval = 500 * time.Millisecond

// startOperator sets up the operator and lets it run.
func (w *World) startOperator(ctx context.Context) error {
	o := &operator{done: make(chan struct{}), runs: map[string]int{}}
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

	// The operator goes on while the tenants are removed, also after an interrupt.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	w.operator = o
	go func() {
		defer close(o.done)
		o.ended = mgr.Start(running)
	}()
	return nil
}

func (w *World) newManager(o *operator) (manager.Manager, error) {
	var config *rest.Config
	config, o.requests = controlplane.CountRequests(w.options.Operator)
	skipNameValidation := true
	options := manager.Options{
		Scheme:  w.client.Scheme(),
		Logger:  w.options.Logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test tells several stories in one process.
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNameValidation},
	}
	if w.options.Webhooks {
		var err error
		if o.webhooks, err = webhookserver.New(); err != nil {
			return nil, err
		}
		options.WebhookServer = o.webhooks
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	o.cache = mgr.GetCache()
	return mgr, nil
}

// newHub connects to the cluster a second time, as a user who may read ConfigMaps only.
func (w *World) newHub(o *operator) (cluster.Cluster, error) {
	var config *rest.Config
	config, o.hubRequests = controlplane.CountRequests(w.options.Hub)
	return cluster.New(config, func(options *cluster.Options) {
		options.Scheme = w.client.Scheme()
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

// synced returns when the caches are filled.
func (o *operator) synced(ctx context.Context) error {
	if !o.cache.WaitForCacheSync(ctx) {
		return errors.New("the operator's caches are not filled")
	}
	return nil
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
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[request.Name]++
	return result, err
}

// reconciles returns how often each tenant was reconciled.
func (o *operator) reconciles() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.runs)
}

// failure returns nil while the operator runs.
func (o *operator) failure() error {
	if o == nil {
		return errNotRunning
	}
	select {
	case <-o.done:
		return errors.Join(errNotRunning, o.ended)
	default:
		return nil
	}
}

func (o *operator) stop() error {
	o.cancel()
	<-o.done
	return o.ended
}
