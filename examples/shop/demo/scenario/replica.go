package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/sharding"
)

const (
	// A killed replica is noticed when its Lease has expired for its duration.
	leaseDuration, renewDeadline, retryPeriod = 10 * time.Second, 8 * time.Second, 200 * time.Millisecond

	// hostRetry is how often a host is asked for that belongs to somebody else.
	hostRetry = time.Second
)

// replica is one replica of the operator. Each has a manager of its own, with its own cache and queue.
type replica struct {
	// dead is true once it is killed: nothing that it sends arrives any more.
	dead atomic.Bool
	stop context.CancelFunc
}

var errDead = errors.New("the replica was killed")

// connect returns a config for the replica, as a user.
func (r *replica) connect(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if r.dead.Load() {
				return nil, errDead
			}
			return next.RoundTrip(req)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// kill ends the replica as if its process were killed. It does not release its Lease.
func (r *replica) kill() {
	r.dead.Store(true)
	r.stop()
}

// startReplica sets up a replica, as the main.go of a sharded operator does, and lets it run.
func (s *scenario) startReplica(ctx context.Context, name string) error {
	r := &replica{}
	config := r.connect(s.Users[OperatorUser])
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
	s.replicas[name] = r
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	return s.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		context.AfterFunc(ctx, stop)
		if err := mgr.Start(running); err != nil && !r.dead.Load() {
			return fmt.Errorf("%s failed: %w", name, err)
		}
		return nil
	}))
}
