package storytelling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
)

// Operator is a manager as main.go of an example runs it, observed from outside. The zero value does not run; nor does
// nil.
type Operator struct {
	// Cache is the manager's, from Start on.
	Cache cache.Cache

	cancel context.CancelFunc
	done   chan struct{}
	// ended is the outcome, to be read when done is closed.
	ended error

	mu   sync.Mutex
	runs map[string]int
}

// ErrNotRunning says that there is no operator.
var ErrNotRunning = errors.New("the operator does not run")

// ManagerOptions are those of the operators of stories.
func ManagerOptions(scheme *runtime.Scheme, logger logr.Logger) manager.Options {
	skipNameValidation := true
	return manager.Options{
		Scheme:  scheme,
		Logger:  logger,
		Metrics: metricsserver.Options{BindAddress: "0"},
		// A test tells several stories in one process.
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNameValidation},
	}
}

// Start lets the manager run, also when ctx is at its end: until Stop.
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

// Synced returns when the caches are filled.
func (o *Operator) Synced(ctx context.Context) error {
	if !o.Cache.WaitForCacheSync(ctx) {
		return errors.New("the operator's caches are not filled")
	}
	return nil
}

// Count counts a reconcile of the resource of that name that has ended.
func (o *Operator) Count(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[string]int{}
	}
	o.runs[name]++
}

// Reconciles returns how often each resource was reconciled.
func (o *Operator) Reconciles() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.runs)
}

// Failure returns nil while the operator runs.
func (o *Operator) Failure() error {
	if o == nil || o.done == nil {
		return ErrNotRunning
	}
	select {
	case <-o.done:
		return errors.Join(ErrNotRunning, o.ended)
	default:
		return nil
	}
}

// Stop ends it, and returns how it has ended. What does not run need not be stopped.
func (o *Operator) Stop() error {
	if o == nil || o.done == nil {
		return nil
	}
	o.cancel()
	<-o.done
	return o.ended
}

// SteadyRounds is how often in a row Steady has resources reconciled.
const SteadyRounds = 5

// Steady has the resources of these names reconciled several times, each time after touch has changed something about
// them that does not matter, and holds when none of the counters has counted a request meanwhile. What the operator
// still had to do when it is first called, such as to send the last events, makes a round fail; a tree that always has
// something to do never passes.
func (o *Operator) Steady(
	ctx context.Context, patience time.Duration, names []string, touch func(ctx context.Context, name string) error, counters ...*controlplane.Requests,
) error {
	for range SteadyRounds {
		for _, counter := range counters {
			counter.Reset()
		}
		if err := o.reconcileAll(ctx, patience, names, touch); err != nil {
			return err
		}
		total, texts := 0, []string(nil)
		for _, counter := range counters {
			total += counter.Total()
			texts = append(texts, counter.String())
		}
		if total != 0 {
			return fmt.Errorf("%d API requests:\n%s", total, strings.Join(texts, "\nand on the next cluster:\n"))
		}
	}
	return nil
}

// reconcileAll returns when each resource was reconciled after it was touched.
func (o *Operator) reconcileAll(ctx context.Context, patience time.Duration, names []string, touch func(ctx context.Context, name string) error) error {
	before := o.Reconciles()
	for _, name := range names {
		if err := touch(ctx, name); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, time.Millisecond, patience, true, func(context.Context) (bool, error) {
		now := o.Reconciles()
		for _, name := range names {
			if now[name] == before[name] {
				return false, o.Failure()
			}
		}
		return true, nil
	})
}
