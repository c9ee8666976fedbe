package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/simulation/internal/server"
	"github.com/espalier-dev/espalier/simulation/internal/transport"
)

// replica is one of the operator's processes, and those after it.
type replica struct {
	world   *World
	options Options
	name    string
	network *transport.Network
	hooks   *hooks

	mu sync.Mutex
	// alive is the client of the process that runs, or nil.
	alive *transport.Client
	// stop ends the replica, and done waits for that. Both are nil if it does not run.
	stop context.CancelFunc
	done chan struct{}
}

// start runs processes until stop is called.
func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), worldKey{}, r.world))
	done := make(chan struct{})
	r.stop, r.done = cancel, done
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.process(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
}

// end ends the replica and waits for it. What its process had not sent has no effect.
func (r *replica) end() {
	r.kill()
	r.mu.Lock()
	stop, done := r.stop, r.done
	r.stop, r.done = nil, nil
	r.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// kill ends the process.
func (r *replica) kill() {
	r.mu.Lock()
	alive := r.alive
	r.mu.Unlock()
	if alive != nil {
		alive.Kill()
	}
}

// process runs a process until it dies, fails, or the context ends.
func (r *replica) process(ctx context.Context) {
	alive := r.network.Client(r.name)
	ctx, cancel := context.WithCancel(withPanics(ctx, alive.Died(), r.panicked))
	defer cancel()
	go func() {
		select {
		case <-alive.Died():
		case <-ctx.Done():
		}
		cancel()
	}()
	r.mu.Lock()
	r.alive = alive
	r.mu.Unlock()
	defer alive.Kill()
	r.network.Note(r.name + " starts")
	err := r.manage(ctx, alive)
	if err != nil && ctx.Err() == nil {
		r.network.Note(fmt.Sprintf("%s ends: %v", r.name, err))
		return
	}
	r.network.Note(r.name + " ends")
}

// panicked fails the story.
func (r *replica) panicked(reason any, stack string) {
	if r.options.AllowPanics {
		r.network.Note(fmt.Sprintf("%s panics: %v", r.name, reason))
		return
	}
	r.world.abort(fmt.Sprintf("%s panics: %v\n%s", r.name, reason, stack))
}

// manage makes a manager and runs it.
func (r *replica) manage(ctx context.Context, alive *transport.Client) error {
	options := r.options.Manager
	options.Scheme = r.options.Scheme
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.HealthProbeBindAddress, options.PprofBindAddress = "0", "0"
	options.Controller.SkipNameValidation = ptr.To(true)
	options.WebhookServer = r.hooks.server()
	options.Logger = logr.New(errorSink{elsewhere: options.Logger.GetSink(), note: func(text string) {
		if ctx.Err() == nil {
			r.network.Note(r.name + problem + text)
		}
	}})
	options.BaseContext = panicsIn(ctx, options.BaseContext)
	if options.LeaderElection && options.LeaderElectionNamespace == "" {
		options.LeaderElectionNamespace = "default"
	}
	mgr, err := ctrl.NewManager(alive.Config(server.Host), options)
	if err != nil {
		return err
	}
	if r.options.Operator != nil {
		if err := r.options.Operator(ctx, mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}
