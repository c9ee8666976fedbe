package story

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/controlplane"
	"github.com/espalier-dev/espalier/reconcilers"
)

// operator is the operator as main.go of the example runs it, observed from outside: what it asks of the API server, and
// how often it reconciles.
type operator struct {
	tree     string
	requests *controlplane.Requests
	cache    cache.Cache
	cancel   context.CancelFunc
	done     chan struct{}
	// ended is the outcome, to be read when done is closed.
	ended error

	mu   sync.Mutex
	runs map[string]int
}

var errNotRunning = errors.New("the operator does not run")

// startOperator sets up the operator and lets it run.
func (w *World) startOperator(ctx context.Context) error {
	config, requests := controlplane.CountRequests(w.options.Operator)
	skipNameValidation := true
	mgr, err := manager.New(config, manager.Options{
		Scheme:  w.client.Scheme(),
		Logger:  w.options.Logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test tells several stories in one process.
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	o := &operator{requests: requests, cache: mgr.GetCache(), done: make(chan struct{}), runs: map[string]int{}}
	root := controller.New(
		reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, 10*time.Hour),
		controller.Options{Directory: w.directory},
	)
	root.AfterReconcile = o.count
	o.tree = root.Describe().String()
	if err := root.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the tree: %w", err)
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

// synced returns when the caches are filled.
func (o *operator) synced(ctx context.Context) error {
	if !o.cache.WaitForCacheSync(ctx) {
		return errors.New("the operator's caches are not filled")
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
