package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/informers"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/transport"
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

	// failed is how many processes in a row failed, unready how many before the first one that was set up. They belong
	// to the goroutine of the replica.
	failed, unready int
}

// start runs processes until stop is called.
func (r *replica) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.stop, r.done = cancel, done
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.process(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(r.pause()):
			}
		}
	}()
}

// end ends the replica and waits for it. What its process had not sent has no effect.
func (r *replica) end() {
	r.kill()
	r.terminate()
}

// terminate ends the replica and waits for it. Its process ends what it has begun.
func (r *replica) terminate() {
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

const (
	// shortestPause is how long no process of a replica runs after one has died or failed. After each further failure
	// in a row it takes twice as long, up to longestPause. The numbers of a kubelet are ten times the first one and the
	// same last one.
	shortestPause, longestPause = time.Second, 5 * time.Minute
	// forgiven is how long a process runs after which a failure is the first one again, as of a kubelet.
	forgiven = 10 * time.Minute
	// hopeless is how many processes fail before one was set up until the story fails.
	hopeless = 5
)

// pause returns how long the replica has no process now.
func (r *replica) pause() time.Duration {
	return min(shortestPause<<min(max(r.failed-1, 0), 10), longestPause)
}

// process runs a process until it dies, fails, or the context ends.
func (r *replica) process(ctx context.Context) {
	alive := r.network.Client(r.name)
	ctx, cancel := context.WithCancel(withPanics(fault.WithCaller(ctx, alive), alive.Died(), r.panicked))
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
	begin := time.Now()
	mgr, err := r.setUp(ctx, alive)
	if err == nil {
		r.unready = -1
		err = mgr.Start(ctx)
	} else if ctx.Err() == nil && !passes(err) {
		r.doubt(err)
	}
	if err == nil || ctx.Err() != nil {
		r.failed = 0
		r.network.Note(r.name + " ends")
		return
	}
	if time.Since(begin) >= forgiven {
		r.failed = 0
	}
	r.failed++
	r.network.Note(r.name + problem + "the process ends: " + errorLine(err, "", nil))
}

// doubt lets the story fail if no process was ever set up.
func (r *replica) doubt(err error) {
	if r.unready < 0 {
		return
	}
	r.unready++
	if r.unready == hopeless {
		r.world.Errorf("%s does not start: %d processes failed to be set up, the last one with: %v",
			r.name, hopeless, err)
	}
}

// panicked fails the story.
func (r *replica) panicked(reason any, stack string) {
	if r.options.AllowPanics {
		r.network.Note(fmt.Sprintf("%s panics: %v", r.name, reason))
		return
	}
	r.world.abort(fmt.Sprintf("%s panics: %v\n%s", r.name, reason, stack))
}

// setUp makes a manager with all that the operator adds to it. A panic of the operator is an error.
func (r *replica) setUp(ctx context.Context, alive *transport.Client) (mgr ctrl.Manager, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.panicked(reason, panicStack())
			err = fmt.Errorf("options: Operator panicked: %v", reason)
		}
	}()
	options := r.options.Manager
	options.Scheme = r.options.Scheme
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.HealthProbeBindAddress, options.PprofBindAddress = "0", "0"
	options.Controller.SkipNameValidation = ptr.To(true)
	options.WebhookServer = r.hooks.server(ctx)
	options.Logger = logr.New(errorSink{elsewhere: options.Logger.GetSink(), note: func(text string) {
		if ctx.Err() == nil {
			r.network.Note(r.name + problem + text)
		}
	}, requeued: func(object, delay string) { r.world.requeued(r.name, object, delay) }})
	options.Cache.DefaultWatchErrorHandler = r.watchErrors(ctx, options.Cache.DefaultWatchErrorHandler)
	base := options.BaseContext
	options.BaseContext = func() context.Context {
		return fault.WithCaller(panicsIn(ctx, base)(), alive)
	}
	if options.LeaderElection && options.LeaderElectionNamespace == "" {
		options.LeaderElectionNamespace = "default"
	}
	if options.Cache.NewInformer == nil {
		options.Cache.NewInformer = informers.New(r.options.Plan.Seed, r.name)
	}
	newCache := options.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	options.NewCache = func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		made, err := newCache(config, o)
		return ending{Cache: made, process: ctx}, err
	}
	config, operator := r.options.authenticated(alive.Config(server.Host)), r.options.Operator
	if r.options.Prepare != nil {
		if operator, err = r.options.Prepare(ctx, config, &options); err != nil {
			return nil, err
		}
	}
	mgr, err = ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	if operator != nil {
		err = operator(ctx, &process{mgr, ctx, r.panicked})
	}
	return mgr, err
}

// watchErrors returns the handler of errors of watches, which notes an object that the Go type cannot decode. Its
// request succeeded, so nothing else in the log says that. Other errors are answers to requests, or faults.
func (r *replica) watchErrors(
	process context.Context, given toolscache.WatchErrorHandlerWithContext,
) toolscache.WatchErrorHandlerWithContext {
	if given == nil {
		given = toolscache.DefaultWatchErrorHandler
	}
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		var sent *url.Error
		isAnswer := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || errors.As(err, &sent)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled)
		if !isAnswer && !ended && process.Err() == nil {
			r.network.Note(r.name + problem + errorLine(err, "", nil))
		}
		given(ctx, reflector, err)
	}
}
