package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"
	"github.com/espalier-dev/espalier/validation"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// root is what each root has and the author does not configure: what it keeps from request to request.
type root struct {
	states resourcestate.Store
	// identity tells the controller of this root apart from others; empty until it is set up.
	identity string
}

// identify gives the root, which is called name, its identity.
func (r *root) identify(name string) {
	r.identity = fmt.Sprintf("%s %p", name, r)
}

// configOf is what the tree works with. It is the author's config itself until the root is set up.
func (r *root) configOf(config Config) Config {
	if r.identity != "" && config.Tracker != nil {
		// Two controllers for one kind may share a config. What one has tracked is not for the other to sweep.
		config.Tracker = tracker.ForController(config.Tracker, r.identity)
	}
	return config
}

// rootParts are the fields that all roots have, so that what roots do alike is written once.
type rootParts[T client.Object] struct {
	kind           string
	name           string
	controllerName string
	resourceType   T
	config         Config
	tree           SubReconciler[T]
	setup          func(ctx context.Context, mgr Manager, bldr *Builder) error
	before         func(ctx context.Context, req Request) (context.Context, Result, error)
	after          func(ctx context.Context, req Request, res Result, err error) (Result, error)
}

// checkType finds a type of which no resource can be made.
func (r *rootParts[T]) checkType() error {
	if isNil(r.resourceType) {
		return fmt.Errorf("%s %q must define Type since none can be made of %s", r.kind, r.name, reflect.TypeFor[T]())
	}
	if lacksKind(r.resourceType) {
		return fmt.Errorf("%s %q must define Type with apiVersion and kind since it is unstructured", r.kind, r.name)
	}
	return nil
}

func (r *rootParts[T]) checkConfig() error {
	if r.config.Client == nil {
		return fmt.Errorf("%s %q must define Config to reconcile", r.kind, r.name)
	}
	return nil
}

// validateTree validates the tree, if the validation is recursive.
func (r *rootParts[T]) validateTree(ctx context.Context) error {
	if err := validateNested(derive(ctx, r.fill), r.tree); err != nil {
		return fmt.Errorf("%s %q must have a valid Reconciler: %w", r.kind, r.name, err)
	}
	return nil
}

// fill puts onto a scope what a root says about itself.
func (r *rootParts[T]) fill(s *treeContext) {
	s.setConfig(r.config)
	s.originalConfig, s.hasOriginalConfig = r.config, true
	s.resourceType, s.originalResourceType = r.resourceType, r.resourceType
}

// prepare returns the context for a request, or for the set-up.
func (r *rootParts[T]) prepare(ctx context.Context, req Request, p *requestState) context.Context {
	s := *contextOf(ctx)
	s.Context = ctx
	s.request = req
	r.fill(&s)
	s.state = p
	return Enter(&s, r.name)
}

// rootSetup is how the set-up of one root differs from that of others.
type rootSetup struct {
	// root is what the controller calls.
	root reconcile.Reconciler
	// validate validates all that is recursive about the root.
	validate func(ctx context.Context) error
	// request is the one that nodes find on the context.
	request Request
	// watch adds the watches of the root itself.
	watch func(bldr *Builder)
	// finish is called last, with the context of the tree. Optional.
	finish func(ctx context.Context, mgr Manager, bldr *Builder) error
}

// setUp validates the whole tree and builds a controller for it.
func (r *rootParts[T]) setUp(ctx context.Context, mgr Manager, how rootSetup) (controller.Controller, error) {
	ctx = r.prepare(ctx, how.request, nil)
	if err := how.validate(validation.WithRecursive(ctx)); err != nil {
		return nil, err
	}
	if err := r.checkConfig(); err != nil {
		return nil, err
	}
	ctx = derive(ctx, func(s *treeContext) { s.watches = &watches{byType: map[watchedType]*fanOut{}} })

	bldr := ctrl.NewControllerManagedBy(mgr)
	how.watch(bldr)
	if r.controllerName != "" {
		bldr.Named(r.controllerName)
	}
	if r.setup != nil {
		if err := r.setup(ctx, mgr, bldr); err != nil {
			return nil, err
		}
	}
	if err := r.tree.SetupWithManager(ctx, mgr, bldr); err != nil {
		return nil, err
	}
	if how.finish != nil {
		if err := how.finish(ctx, mgr, bldr); err != nil {
			return nil, err
		}
	}
	built, err := bldr.Build(how.root)
	if err != nil {
		return nil, r.explainBuild(err)
	}
	return built, nil
}

// explainBuild tells which root could not be built, and what helps if its controller is called as another one. Controller-runtime
// has no error of its own for that, so its text is what there is to go by.
func (r *rootParts[T]) explainBuild(err error) error {
	if strings.Contains(err.Error(), "Controller names must be unique") {
		return fmt.Errorf("%s %q must define another ControllerName, which tells two controllers for one kind apart: %w", r.kind, r.name, err)
	}
	return fmt.Errorf("%s %q is unable to build its controller: %w", r.kind, r.name, err)
}

// serve handles a request: it prepares the context, calls handle between the hooks, and decides what controller-runtime gets.
// With skip, which may be nil, nothing of that happens.
func (r *rootParts[T]) handleRequest(
	ctx context.Context, req Request,
	skip func(ctx context.Context, req Request) bool,
	handle func(ctx context.Context, req Request, p *requestState) (Result, error),
) (Result, error) {
	p := &requestState{}
	ctx = stash.WithContext(ctx)
	ctx = rtime.StashNow(ctx, time.Now())
	ctx = r.prepare(ctx, req, p)
	if skip != nil && skip(ctx, req) {
		return Result{}, nil
	}
	result, err := r.runHooks(ctx, req, p, handle)
	result, err = toControllerResult(result, err)
	return result, locateError(p, err)
}

// between runs the hooks around the request.
func (r *rootParts[T]) runHooks(
	ctx context.Context, req Request, p *requestState,
	handle func(ctx context.Context, req Request, p *requestState) (Result, error),
) (Result, error) {
	before := Result{}
	if r.before != nil {
		replaced, result, err := r.before(ctx, req)
		if err != nil {
			return result, err
		}
		before = result
		if replaced != nil {
			ctx = replaced
		}
	}
	result, err := handle(ctx, req, p)
	result = AggregateResults(before, result)
	if r.after != nil {
		return r.after(ctx, req, result, err)
	}
	return result, err
}

// conclude decides what controller-runtime gets of the outcome of a request:
//
//   - a quiet error becomes a requeue with back-off, or the delay that was asked for, which controller-runtime prefers;
//   - a failure that is to be silent becomes a requeue with back-off, without a delay: it is to be tried again as one that is not;
//   - a durable one becomes nothing but what was asked for, as another attempt will not mend it;
//   - any other error is returned, without a delay or a requeue. Controller-runtime heeds neither beside an error, and warns of
//     them: it comes back with back-off, and after a [reconcile.TerminalError] not at all. So law L6 is kept: what is dropped
//     here never counted. Of a result beside an error it heeds the priority, which stays.
func toControllerResult(result Result, err error) (Result, error) {
	switch {
	case err == nil, isDurable(err):
		return result, nil
	case isQuiet(err) && hidesFailure(err):
		return withRequeue(Result{Priority: result.Priority}, true), nil
	case isQuiet(err):
		return withRequeue(result, true), nil
	default:
		return Result{Priority: result.Priority}, err
	}
}

// withTrackerRound runs do in a round of the tracker: what is not tracked any more is forgotten if do got so far that all was tracked
// which is to be. A panic is no such round.
func withTrackerRound(config Config, watcher client.Object, do func() (complete bool)) {
	complete := false
	if rounds, ok := config.Tracker.(tracker.Rounds); ok {
		rounds.BeginRound(watcher)
		defer func() { rounds.EndRound(watcher, complete) }()
	}
	complete = do()
}

// fetchFailed logs an error of reading the resource, unless it is quiet, and returns it.
func fetchFailed(ctx context.Context, err error) error {
	if !isQuiet(err) {
		logr.FromContextOrDiscard(ctx).Error(err, "unable to fetch resource")
	}
	return err
}
