package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Operator runs the manager of an example, and counts its requests and reconciles. The zero value does not run.
type Operator struct {
	// Cache is the manager's, from Start on.
	Cache cache.Cache

	cancel context.CancelFunc
	done   chan struct{}
	// ended is the outcome, to be read when done is closed.
	ended error

	// requests has a counter for each cluster that it connects to.
	requests []*controlplane.Requests

	mu   sync.Mutex
	runs map[string]int
}

// ErrNotRunning says that there is no operator.
var ErrNotRunning = errors.New("the operator does not run")

// ManagerOptions returns the options for the managers of demos.
func ManagerOptions(scheme *runtime.Scheme, logger logr.Logger) manager.Options {
	skipNameValidation := true
	return manager.Options{
		Scheme:  scheme,
		Logger:  logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test plays several scenarios in one process.
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNameValidation},
	}
}

// Connect returns a configuration whose requests are counted, and the counter.
func (o *Operator) Connect(config *rest.Config) (*rest.Config, *controlplane.Requests) {
	config, requests := controlplane.CountRequests(config)
	o.requests = append(o.requests, requests)
	return config, requests
}

// NewManager returns a manager that connects as the user, whose requests are counted. change may change its options.
func (s *Scenario) NewManager(user string, change ...func(*manager.Options)) (manager.Manager, error) {
	config, _ := s.Operator.Connect(s.Users[user])
	options := ManagerOptions(s.Client.Scheme(), s.Logger)
	for _, f := range change {
		f(&options)
	}
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("unable to make the manager of %s: %w", user, err)
	}
	return mgr, nil
}

// Start runs the manager until Stop is called, even if ctx ends.
func (o *Operator) Start(ctx context.Context, mgr manager.Manager) {
	o.Cache = mgr.GetCache()
	o.done = make(chan struct{})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o.cancel = cancel
	go func() {
		defer close(o.done)
		o.ended = mgr.Start(running)
	}()
}

// Synced holds when the caches are filled.
func (o *Operator) Synced(ctx context.Context) error {
	if o.Cache == nil {
		return ErrNotRunning
	}
	if !o.Cache.WaitForCacheSync(ctx) {
		return errors.New("the operator's caches are not filled")
	}
	return nil
}

// Count counts a reconcile that has ended. It is for AfterReconcile of a root.
func (o *Operator) Count(
	_ context.Context, request reconcile.Request, result reconcile.Result, err error,
) (reconcile.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[string]int{}
	}
	o.runs[request.Name]++
	return result, err
}

// Reconciles returns how often each resource was reconciled.
func (o *Operator) Reconciles() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.runs)
}

// Failure returns nil while the operator runs.
func (o *Operator) Failure() error {
	if o.done == nil {
		return ErrNotRunning
	}
	select {
	case <-o.done:
		return errors.Join(ErrNotRunning, o.ended)
	default:
		return nil
	}
}

// Stop stops the manager and returns its error. It does nothing if the operator does not run.
func (o *Operator) Stop() error {
	if o.done == nil {
		return nil
	}
	o.cancel()
	<-o.done
	return o.ended
}

// IdleRounds is how often Idle has resources reconciled.
const IdleRounds = 5

// Idle changes an annotation of the resources several times, and waits each time until they are reconciled. It holds
// when the operator makes no API request meanwhile. Work that the operator still had to do, such as sending the last
// events, makes one call fail; an operator that is never idle makes all calls fail.
func (s *Scenario) Idle(resources ...client.Object) Condition {
	touches := 0
	touch := func(ctx context.Context) error {
		touches++
		for _, resource := range resources {
			change := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, TouchedAnnotation, touches)
			if err := s.Patches(resource, change)(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return func(ctx context.Context) error {
		for range IdleRounds {
			for _, requests := range s.Operator.requests {
				requests.Reset()
			}
			before := s.Operator.Reconciles()
			if err := touch(ctx); err != nil {
				return err
			}
			err := Eventually(ctx, s.Patience, func(context.Context) error {
				for _, resource := range resources {
					if name := resource.GetName(); s.Operator.Reconciles()[name] == before[name] {
						return fmt.Errorf("%s is not reconciled", name)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, requests := range s.Operator.requests {
				if n := requests.Total(); n > 0 {
					return fmt.Errorf("%d API requests:\n%s", n, requests)
				}
			}
		}
		return nil
	}
}

// Without holds when the condition does, and the counter has not gone up meanwhile.
func Without(what string, counter func() int64, condition Condition) Condition {
	return func(ctx context.Context) error {
		before := counter()
		if err := condition(ctx); err != nil {
			return err
		}
		if n := counter() - before; n > 0 {
			return fmt.Errorf("there were %d %s", n, what)
		}
		return nil
	}
}

// TouchedAnnotation is on resources that were reconciled by Idle.
const TouchedAnnotation = "example.com/touched"
