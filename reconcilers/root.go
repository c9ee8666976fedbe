package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"
	"github.com/espalier-dev/espalier/validation"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// root is what each root has and the author does not configure: what it keeps from request to request.
type root struct {
	states resourcestate.Store
	// identity distinguishes the controller of this root from others. It is empty until the root is set up.
	identity string
	// watches are those of the controller. They are nil until the root is set up.
	watches *watches
	// observed is what observers know of the root.
	observed observedRoot
	orphaned orphaned

	// described are the types of the conditions that the nodes of the tree set.
	described     []string
	describedOnce sync.Once
}

// describedConditions returns the types of the conditions that the nodes of tree set, without the summary.
func (r *root) describedConditions(tree any, summary string) []string {
	r.describedOnce.Do(func() {
		r.described = slices.DeleteFunc(conditionTypes(Describe(tree)), func(t string) bool { return t == summary })
	})
	return r.described
}

// identify gives the root called name its identity, for a set-up.
func (r *root) identify(name string) {
	r.identity = fmt.Sprintf("%s %p", name, r)
	r.watches = newWatches()
}

// configOf returns the config that the tree works with. Until the root is set up that is the author's config itself.
func (r *root) configOf(config Config) Config {
	if r.identity != "" && config.Tracker != nil {
		// Two controllers for one kind may share a config. Neither may drop what the other has tracked.
		config.Tracker = tracker.ForController(config.Tracker, r.identity)
	}
	return config
}

// forget drops what is kept of a resource that is gone.
func (r *root) forget(ctx context.Context, config Config, resourceType client.Object, req Request) {
	r.states.Forget(req.NamespacedName)
	r.orphaned.forget(req.NamespacedName)
	r.watches.forget(req)
	Note(ctx, Forgotten{})
	rounds, ok := config.Tracker.(tracker.Rounds)
	if !ok || gotype.IsNil(resourceType) {
		return
	}
	gone := copyOf(resourceType)
	gone.SetNamespace(req.Namespace)
	gone.SetName(req.Name)
	rounds.Forget(gone)
}

// rootParts are the fields that all roots have.
type rootParts[T client.Object] struct {
	kind           string
	name           string
	controllerName string
	resourceType   T
	config         Config
	watches        *watches
	observed       *observedRoot
	tree           SubReconciler[T]
	setup          func(ctx context.Context, mgr Manager, bldr *Builder) error
	before         func(ctx context.Context, req Request) (context.Context, Result, error)
	after          func(ctx context.Context, req Request, res Result, err error) (Result, error)
	// skipForbiddenRetry, skipFinalizerEvents and takeOverFrom are the fields of the root.
	skipForbiddenRetry  bool
	skipFinalizerEvents bool
	takeOverFrom        []string
	// first is called before the hooks of the author. It reports whether nothing else is to be done. Optional.
	first func(ctx context.Context, req Request) (done bool, err error)
}

// errorf returns an error of the root.
func (r *rootParts[T]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{r.kind, r.name}, args...)...)
}

// checkType returns an error for a type that no resource can be made of.
func (r *rootParts[T]) checkType() error {
	if gotype.IsNil(r.resourceType) {
		return r.errorf("must define Type since none can be made of %s", reflect.TypeFor[T]())
	}
	if lacksKind(r.resourceType) {
		return r.errorf("must define Type with apiVersion and kind since it is unstructured")
	}
	return nil
}

func (r *rootParts[T]) checkConfig() error {
	if r.config.Client == nil {
		return r.errorf("must define Config to reconcile")
	}
	return nil
}

// validateTree validates the tree, if the validation is recursive.
func (r *rootParts[T]) validateTree(ctx context.Context) error {
	if err := validateNested(derive(ctx, r.fill), r.tree); err != nil {
		return r.errorf("must have a valid Reconciler: %w", err)
	}
	return nil
}

// recordsEvents is what the nodes of a tree do with events.
var recordsEvents = Access{Object: &corev1.Event{}, Verbs: []string{"create", "patch"}}

// describe describes the tree, and what a root does with the resource and more.
func (r *rootParts[T]) describe(more ...Access) Description {
	uses := []Access{
		{Object: r.resourceType, Verbs: []string{"get", "list", "watch"}},
		recordsEvents,
	}
	d := Description{
		Kind:     r.kind,
		Name:     r.name,
		Detail:   typeName(r.resourceType),
		Resource: r.resourceType,
		Uses:     append(uses, more...),
		Nodes:    []Description{Describe(r.tree)},
	}
	if r.before == nil {
		// Nothing but BeforeReconcile stores a value for the tree.
		d.Order = &Order{}
	}
	return d
}

// fill sets the parts of the context that a root defines.
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
	s.state, s.watches, s.list = p, r.watches, nil
	return Enter(&s, r.name)
}

// rootSetup is what differs between the set-ups of the roots.
type rootSetup struct {
	// root is called by the controller.
	root reconcile.Reconciler
	// validate validates the root and, if recursive, its tree.
	validate func(ctx context.Context) error
	// request is on the context of the nodes.
	request Request
	// watch adds the watches of the root itself.
	watch func(bldr *Builder)
	// finish is called last, with the context of the tree. Optional.
	finish func(ctx context.Context, mgr Manager, bldr *Builder) error
}

// setUp validates the tree, sets it up, and builds a controller for it. Nodes of other packages are validated after
// their set-up.
func (r *rootParts[T]) setUp(ctx context.Context, mgr Manager, how rootSetup) (controller.Controller, error) {
	ctx = r.prepare(ctx, how.request, nil)
	beforeSetup := derive(ctx, func(s *treeContext) { s.beforeSetup = true })
	if err := how.validate(validation.WithRecursive(beforeSetup)); err != nil {
		return nil, err
	}
	if err := r.checkConfig(); err != nil {
		return nil, err
	}
	bldr := ctrl.NewControllerManagedBy(mgr)
	if r.config.observers != nil {
		r.watches.causes = newCauses()
	}
	how.watch(bldr)
	if r.controllerName != "" {
		bldr.Named(r.controllerName)
	}
	if err := r.setUpTree(ctx, mgr, bldr, how.finish); err != nil {
		return nil, err
	}
	kind := func(obj client.Object) schema.GroupVersionKind { return kindOf(r.config.Client, obj) }
	if err := checkTree(ctx, Describe(how.root), r.resourceType, kind); err != nil {
		return nil, r.errorf("%w", err)
	}
	built, err := r.buildOnShard(bldr, how.root)
	if err != nil {
		if strings.Contains(err.Error(), "Controller names must be unique") {
			// Controller-runtime has no error type for that.
			return nil, r.errorf("must define another ControllerName, "+
				"which tells two controllers for one kind apart: %w", err)
		}
		return nil, r.errorf("is unable to build its controller: %w", err)
	}
	if r.config.observers != nil {
		r.config.observers.note(ctx, r.rootNode(), SetUp{
			Tree: Describe(how.root), Watched: r.watches.kinds(),
		})
		if r.config.shard != nil {
			r.config.observers.note(ctx, r.rootNode(), r.config.shard)
		}
	}
	return built, nil
}

// setUpTree sets the tree up with the builder of its controller.
func (r *rootParts[T]) setUpTree(ctx context.Context, mgr Manager, bldr *Builder, finish setUpStep) error {
	ctx = derive(ctx, func(s *treeContext) { s.claims = map[any]string{} })
	r.watches.mgr = mgr
	r.watches.tracked.StartWith(ctx, mgr, bldr)
	keepWatched(ctx, r.config, r.resourceType)
	for _, step := range []setUpStep{r.setup, r.tree.SetupWithManager, finish} {
		if step == nil {
			continue
		}
		if err := step(ctx, mgr, bldr); err != nil {
			return err
		}
	}
	return r.validateTree(validation.WithRecursive(ctx))
}

// handleRequest prepares the context, calls handle between the hooks of the author, and decides what controller-runtime
// gets. It does nothing if skip, which may be nil, returns true.
func (r *rootParts[T]) handleRequest(
	ctx context.Context, req Request,
	skip func(ctx context.Context, req Request) bool,
	handle handling,
) (Result, error) {
	if err := r.checkConfig(); err != nil {
		return Result{}, err
	}
	ctx, end, err := r.beginOnShard(ctx, req)
	if err != nil {
		return Result{}, r.errorf("does not reconcile %s: %w", req, err)
	}
	defer end()
	p := &requestState{
		skipFinalizerEvents: r.skipFinalizerEvents, takeOverFrom: r.takeOverFrom,
		leavePanics: r.watches.leavePanics(), observers: r.config.observers,
	}
	ctx = rtime.StashNow(stash.WithContext(ctx), time.Now())
	ctx = r.prepare(ctx, req, p)
	p.causes = r.watches.causesOf(req)
	if r.first != nil {
		if done, err := r.first(ctx, req); done || err != nil {
			r.watches.requestEnded(req, Result{}, err)
			return Result{}, err
		}
	}
	if skip != nil && skip(ctx, req) {
		return Result{}, nil
	}
	return r.request(ctx, req, p, func(ctx context.Context) (Result, error) {
		return r.hooked(ctx, req, p, handle)
	})
}

// handling is what a root does in a request between the hooks of the author.
type handling = func(ctx context.Context, req Request, p *requestState) (Result, error)

// hooked calls handle between the hooks of the author.
func (r *rootParts[T]) hooked(ctx context.Context, req Request, p *requestState, handle handling) (Result, error) {
	var before Result
	var err error
	if r.before != nil {
		var replaced context.Context
		if replaced, before, err = r.before(ctx, req); replaced != nil {
			ctx = replaced
		}
	}
	result := before
	if err == nil {
		result, err = handle(ctx, req, p)
		result = p.reschedule(AggregateResults(before, result), r.skipForbiddenRetry)
		if r.after != nil {
			result, err = r.after(ctx, req, result, err)
		}
	}
	return result, err
}

// returned decides what controller-runtime gets for the outcome of a request. An error gets the path of its node.
func (r *rootParts[T]) returned(p *requestState, result Result, err error) (Result, error) {
	result, err = toControllerResult(result, err)
	if err != nil {
		err = locateError(p, err)
	}
	return result, err
}

// toControllerResult decides what controller-runtime gets for the outcome of a request:
//
//   - A quiet error becomes a requeue with back-off. If the result has a delay, controller-runtime uses the delay.
//   - A quiet error that hides a failure becomes a requeue with back-off, without a delay: the failure is retried as if
//     it were not quiet.
//   - A durable error is dropped, because another attempt fails the same way, and so is a halt until an event. The
//     result is kept.
//   - Any other error is returned, without a delay or a requeue. Controller-runtime ignores both beside an error, and
//     warns of them: it retries with back-off, and does not retry a [reconcile.TerminalError]. So invariant L6 is kept.
//     The priority is kept, because controller-runtime uses it beside an error.
func toControllerResult(result Result, err error) (Result, error) {
	switch {
	case err == nil, isDurable(err):
		return result, nil
	case isQuiet(err) && hidesFailure(err):
		return withRequeue(Result{Priority: result.Priority}, true), nil
	case isQuiet(err) && wantsRetry(err):
		return withRequeue(result, true), nil
	case isQuiet(err):
		return result, nil
	default:
		return Result{Priority: result.Priority}, err
	}
}

// withTrackerRound runs do in a round of the tracker. If do is complete, the tracker forgets what was not tracked in
// this round. A panic is not complete.
func withTrackerRound(config Config, watcher client.Object, do func() (complete bool)) {
	complete := false
	if rounds, ok := config.Tracker.(tracker.Rounds); ok {
		rounds.BeginRound(watcher)
		defer func() { rounds.EndRound(watcher, complete) }()
	}
	complete = do()
}

// applyDefaults fills in the defaults of resource in memory, by the first of the ways that its type knows: its own
// Default(ctx), a defaulter of controller-runtime's webhooks, or a Default() of old.
func applyDefaults[Type client.Object](ctx context.Context, resource Type) error {
	switch defaulter := any(resource).(type) {
	case validation.Defaulter:
		return defaulter.Default(ctx)
	case admission.Defaulter[Type]:
		return defaulter.Default(ctx, resource)
	case admission.Defaulter[runtime.Object]:
		return defaulter.Default(ctx, resource)
	case interface{ Default() }:
		defaulter.Default()
	}
	return nil
}
