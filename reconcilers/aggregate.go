package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"
	"github.com/espalier-dev/espalier/validation"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// AggregateReconciler is the root of a tree that reconciles one object, which it creates itself from many others: a
// summary, a registry, a merged configuration. It is an ordinary [reconcile.Reconciler].
//
// For each request it reads the object, or starts with an empty one of its name, runs the tree with a fresh stash, asks
// DesiredResource, and has the object manager make the cluster agree:
//
//   - Runs: the tree, whether or not the object exists; then DesiredResource, and the object manager. Requests for
//     other names do nothing.
//   - Stops: when BeforeReconcile, the tree or DesiredResource returns an error. A halt of the tree does not stop it:
//     the object is made as desired, and the result of the tree is kept.
//   - On error: the error is returned, and the object is not written. The error is returned without a delay, because
//     controller-runtime ignores a delay beside an error. A quiet error becomes a requeue with back-off. A durable
//     error is not retried; only a RequeueAfter that was set is kept. An error of the tree is returned as an [Error],
//     which has the path of the node. So is a panic of a node, see [ResourceReconciler].
//   - On deletion: does nothing while the object is terminating, so a [WithFinalizer] has no effect in the tree. When
//     the object is gone, it is created anew, if it is desired.
//
// The request is made once at the start of the controller, after each event of the object, and after events of the
// children of the tree and of the objects that the tree tracks ([Config.TrackAndList]).
//
// The desired object is the object as the tree changed it, unless there is a DesiredResource. Defaults are not filled
// in and conditions are not initialised. The status is not written by itself: it is written with the object if
// MergeBeforeUpdate copies it and the type has no status subresource.
//
// An object that does not exist has no UID, and the API server refuses children of an owner without a UID. Put nodes
// with owned children under an [IfThen] that checks the UID. They run when the event of the new object comes.
//
// While nothing changes, the root makes no request. If the cache does not show yet what the root has written, the
// object is not created again.
type AggregateReconciler[Type client.Object] struct {
	// Name identifies the root in paths and logs; it is not the name of the controller. Default: the kind followed by
	// AggregateReconciler.
	Name string

	// ControllerName is the name of the controller in metrics and logs. Controller-runtime requires that it is unique
	// in a program, so two roots for one kind need different names. Default: the kind in lower case.
	ControllerName string

	// Setup adds watches and indexes, before those of the tree. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SetupForOptions are options for the watch of the object itself. A predicate drops the events of other names. If
	// one of the options is not also a [builder.WatchesOption], that predicate cannot be set, and requests for other
	// names are dropped in Reconcile. Optional.
	SetupForOptions []builder.ForOption

	// Type is an object of the resource's type. It is required for unstructured and duck types, which have to carry
	// their kind. Default: an empty Type.
	Type Type

	// Request names the object. Its name is required; the namespace is empty for a type that has none.
	Request Request

	// Reconciler is the tree. Default: an empty [Sequence].
	Reconciler SubReconciler[Type]

	// DesiredResource returns the object as it should be, or nil if there should be none. Its argument is a copy of the
	// object as the tree changed it. DesiredResource may change and return this copy. The result must have the same
	// name. It must not depend on the time or on random values, else the object is written in each request.
	// DesiredResource may track objects, as the tree does. Default: returns its argument.
	DesiredResource func(ctx context.Context, resource Type) (Type, error)

	// AggregateObjectManager creates, updates and deletes the object. It compares the desired object with the object as
	// it was read. What it tracks is ignored, because the object is watched anyway. An [ApplyingObjectManager] needs a
	// DesiredResource that makes the object from scratch: of a copy it would own all fields. Required, unless the short
	// form is used.
	AggregateObjectManager ObjectManager[Type]

	// MergeBeforeUpdate and Sanitize are the short form of an [UpdatingObjectManager] as AggregateObjectManager, which
	// must then be nil. MergeBeforeUpdate copies onto current what is desired.
	MergeBeforeUpdate func(current, desired Type)
	// Sanitize returns what may be logged of the object. See MergeBeforeUpdate.
	Sanitize func(resource Type) interface{}

	// SkipForbiddenRetry does not retry a child that the API server refused as Forbidden, until an event brings the
	// resource back. The refusal may end without such an event: a quota is raised, or a right is granted. So by default
	// the request is repeated with the back-off of the queue, also after the status was written. A delay of the tree of
	// more than a minute gives way to that. Set it for a tree of reconciler.io/runtime whose tests compare the result.
	// Default: false.
	SkipForbiddenRetry bool

	// SkipFinalizerEvents records no event when a node of the tree has added or removed a finalizer of the object. A
	// failure is always recorded. Default: false.
	SkipFinalizerEvents bool

	// BeforeReconcile is called before the object is read. If the context that it returns is not nil, it is used for
	// the rest of the request. The result is aggregated with the result of the tree. An error ends the request.
	// Optional.
	BeforeReconcile func(ctx context.Context, req Request) (context.Context, Result, error)

	// AfterReconcile is called last and may replace the outcome. It is not called if BeforeReconcile returned an error.
	// Optional.
	AfterReconcile func(ctx context.Context, req Request, res Result, err error) (Result, error)

	// Config is what the tree works with. Required for all but Validate.
	Config Config

	root

	initOnce sync.Once
	manager  ObjectManager[Type]
	// desiresWhole is true if the author set no DesiredResource, so that the whole object is desired.
	desiresWhole bool
}

var _ reconcile.Reconciler = (*AggregateReconciler[client.Object])(nil)

func (r *AggregateReconciler[T]) init() {
	r.initOnce.Do(func() {
		r.Type = defaultType(r.Type)
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sAggregateReconciler", typeName(r.Type))
		}
		if r.Reconciler == nil {
			r.Reconciler = Sequence[T]{}
		}
		if r.DesiredResource == nil {
			r.desiresWhole = true
			r.DesiredResource = func(_ context.Context, resource T) (T, error) { return resource, nil }
		}
		r.manager = r.AggregateObjectManager
		if gotype.IsNil(r.AggregateObjectManager) && r.MergeBeforeUpdate != nil {
			r.manager = &UpdatingObjectManager[T]{
				Name:              r.Name,
				Type:              r.Type,
				MergeBeforeUpdate: r.MergeBeforeUpdate,
				Sanitize:          r.Sanitize,
			}
		}
	})
}

func (r *AggregateReconciler[T]) parts() rootParts[T] {
	return rootParts[T]{
		kind:               "AggregateReconciler",
		name:               r.Name,
		controllerName:     r.ControllerName,
		resourceType:       r.Type,
		config:             r.configOf(r.Config),
		watches:            r.watches,
		observed:           &r.observed,
		tree:               r.Reconciler,
		setup:              r.Setup,
		before:             r.BeforeReconcile,
		after:              r.AfterReconcile,
		skipForbiddenRetry: r.SkipForbiddenRetry,

		skipFinalizerEvents: r.SkipFinalizerEvents,
	}
}

func (r *AggregateReconciler[T]) check(parts *rootParts[T]) error {
	given := !gotype.IsNil(r.AggregateObjectManager)
	switch {
	case r.Request.Name == "":
		return parts.errorf("must define Request")
	case gotype.IsNil(r.manager):
		return parts.errorf("must define MergeBeforeUpdate or AggregateObjectManager")
	case given && (r.MergeBeforeUpdate != nil || r.Sanitize != nil):
		return parts.errorf("may not define both AggregateObjectManager and MergeBeforeUpdate or Sanitize")
	case r.desiresWhole && appliesAllDesired(r.manager):
		return parts.errorf("must define DesiredResource, " +
			"since its AggregateObjectManager applies all that is desired")
	case gotype.IsNil(r.Reconciler):
		return parts.errorf("must have a valid Reconciler: %w", errNilNode)
	}
	return parts.checkType()
}

// SetupWithManager builds a controller for the tree and adds it to the manager.
func (r *AggregateReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager) error {
	_, err := r.SetupWithManagerYieldingController(ctx, mgr)
	return err
}

// SetupWithManagerYieldingController is [AggregateReconciler.SetupWithManager] and returns the controller, so that
// watches can be added while it runs. The whole tree is validated first, the object manager included.
func (r *AggregateReconciler[T]) SetupWithManagerYieldingController(
	ctx context.Context, mgr Manager,
) (controller.Controller, error) {
	r.init()
	r.identify(r.Name)
	parts := r.parts()
	if err := parts.checkUnsharded(mgr, "each shard would write the one object"); err != nil {
		return nil, err
	}
	return parts.setUp(ctx, mgr, rootSetup{
		root:     r,
		request:  r.Request,
		validate: r.validateAll,
		watch:    func(bldr *Builder) { r.watch(mgr, bldr) },
		finish: func(ctx context.Context, mgr Manager, bldr *Builder) error {
			return r.manager.SetupWithManager(ctx, mgr, bldr)
		},
	})
}

func (r *AggregateReconciler[T]) validateAll(ctx context.Context) error {
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if err := validateNested(ctx, r.manager); err != nil {
		return fmt.Errorf("AggregateReconciler %q must have a valid AggregateObjectManager: %w", r.Name, err)
	}
	return nil
}

// Validate checks that the required fields are set and, if recursive, the tree. The object manager is validated when it
// is set up.
func (r *AggregateReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	parts := r.parts()
	if err := r.check(&parts); err != nil {
		return err
	}
	return parts.validateTree(ctx)
}

var _ validation.Validator = (*AggregateReconciler[client.Object])(nil)

// Reconcile handles one request, see [AggregateReconciler].
func (r *AggregateReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	r.init()
	parts := r.parts()
	if err := r.check(&parts); err != nil {
		return Result{}, err
	}
	if req != r.Request {
		return Result{}, nil
	}
	return parts.handleRequest(ctx, req, nil, r.reconcile)
}

// Describe returns a description of the tree, and of what the root itself and its object manager do with the object.
func (r *AggregateReconciler[T]) Describe() Description {
	r.init()
	parts := r.parts()
	description := parts.describe(managerAccess(r.manager, r.Type)...)
	description.Finalizers = managerFinalizers(r.manager)
	return description
}

// watch makes the request after each event of the object, and once at the start: an object that does not exist has no
// events.
func (r *AggregateReconciler[T]) watch(mgr Manager, bldr *Builder) {
	start := func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		queue.Add(r.Request)
		return nil
	}
	bldr.WatchesRawSource(source.Func(start))

	isOurs := func(obj client.Object) bool { return client.ObjectKeyFromObject(obj) == r.Request.NamespacedName }
	obj := watchable(r.Type, mgr.GetScheme())
	if len(r.SetupForOptions) == 0 && r.watches.causes == nil {
		bldr.For(obj, builder.WithPredicates(predicate.NewPredicateFuncs(isOurs)))
		return
	}
	options, ok := watchesOptions(r.SetupForOptions)
	if !ok {
		bldr.For(obj, r.SetupForOptions...)
		return
	}
	// A watch has only the predicates that were set last, and the predicates of the author cannot be read. So the
	// object is watched once more, with the author's options and a handler that checks the name. The watch for the
	// controller's own type, which the builder requires, passes no event on.
	bldr.For(obj, append(slices.Clone(r.SetupForOptions), passNothing)...)
	requestsOf := func(_ context.Context, obj client.Object) []Request {
		if isOurs(obj) {
			return []Request{r.Request}
		}
		return nil
	}
	bldr.Watches(obj, r.watches.noting(handler.EnqueueRequestsFromMapFunc(requestsOf)), options...)
}

func watchesOptions(options []builder.ForOption) ([]builder.WatchesOption, bool) {
	var converted []builder.WatchesOption
	for _, option := range options {
		c, ok := option.(builder.WatchesOption)
		if !ok {
			return nil, false
		}
		converted = append(converted, c)
	}
	return converted, true
}

// reconcile reads the object, runs the tree, and has the manager make what is desired.
func (r *AggregateReconciler[T]) reconcile(ctx context.Context, req Request, p *requestState) (Result, error) {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return Result{}, err
	}
	actual, err := r.read(ctx, config, req)
	if err != nil {
		return Result{}, err
	}
	if gotype.IsNil(actual) || actual.GetDeletionTimestamp() != nil {
		return Result{}, nil
	}
	p.resource = r.states.Of(actual)
	defer func() { p.resource.EndRequest(rtime.RetrieveNow(ctx)) }()
	p.stored = actual
	version := actual.GetResourceVersion()
	resource := copyOf(actual)
	p.resourceSeen = resource
	if resource.GetGeneration() != 0 {
		ctx = apis.StashGeneration(ctx, resource.GetGeneration())
	}

	d, err := r.runTree(ctx, config, actual, resource)
	var managed T
	if err == nil {
		config.Tracker = untracked{}
		managed, err = r.manager.Manage(StashConfig(ctx, config), resource, actual, d.desired)
		if err != nil {
			recordFailure(ctx, describeObject(actual), err)
		}
	}
	r.remember(ctx, req, p, version, managed)
	if err == nil && gotype.IsNil(d.desired) && actual.GetUID() != "" {
		p.resource.Deleted(actual, rtime.RetrieveNow(ctx))
	}
	return d.result, joinLoud(d.halted, err)
}

// desiredState is the outcome of the tree and of DesiredResource.
type desiredState[T client.Object] struct {
	desired T
	result  Result
	// halted is the error of a tree that halted and returned more than that; else nil.
	halted error
}

// runTree runs the tree and asks what is desired.
func (r *AggregateReconciler[T]) runTree(
	ctx context.Context, config Config, actual, resource T,
) (d desiredState[T], err error) {
	withTrackerRound(config, actual, func() (complete bool) {
		d.result, err = ReconcileNested(ctx, r.Reconciler, resource)
		complete = err == nil
		switch {
		case isOnlyHalt(err):
		case isHalt(err):
			d.halted = err
		case err != nil:
			return false
		}
		d.desired, err = r.desired(ctx, actual, resource)
		recordUnlocated(ctx, err)
		return complete && err == nil
	})
	return d, err
}

func (r *AggregateReconciler[T]) desired(ctx context.Context, actual, resource T) (T, error) {
	var none T
	if err := normalize(resource); err != nil {
		return none, err
	}
	desired, err := r.DesiredResource(ctx, copyOf(resource))
	if err != nil || gotype.IsNil(desired) {
		return none, err
	}
	if client.ObjectKeyFromObject(desired) != client.ObjectKeyFromObject(actual) {
		return none, fmt.Errorf("AggregateReconciler %q must desire %s, not %s",
			r.Name, describeObject(actual), describeObject(desired))
	}
	return desired, nil
}

// untracked is a tracker that tracks nothing.
type untracked struct{}

func (untracked) TrackReference(tracker.Reference, client.Object) error { return nil }

func (untracked) TrackObject(client.Object, client.Object) error { return nil }

func (untracked) GetObservers(client.Object) ([]types.NamespacedName, error) {
	return []types.NamespacedName{}, nil
}

// read returns the object as the API server has it, as far as is known. If there is none, it returns an empty object of
// the name. If the root deleted the object and the cache does not show that yet, it returns nil. The caller may change
// the object.
func (r *AggregateReconciler[T]) read(ctx context.Context, config Config, req Request) (T, error) {
	actual := copyOf(r.Type)
	err := config.Get(ctx, req.NamespacedName, actual)
	if apierrs.IsNotFound(err) {
		return r.readUnseen(ctx, config, req)
	}
	if err != nil {
		return actual, err
	}
	known, _ := r.states.Of(actual).Resolve(actual, rtime.RetrieveNow(ctx)).(T)
	return known, nil
}

// readUnseen returns the object if the root created it and the cache does not show it yet. It asks the API server. If
// there is no such object, it returns an empty object of the name.
func (r *AggregateReconciler[T]) readUnseen(ctx context.Context, config Config, req Request) (T, error) {
	if known := r.states.Lookup(req.NamespacedName); known != nil {
		unseen, err := known.Unseen(ctx, config.APIReader, rtime.RetrieveNow(ctx))
		if alive, ok := unseen.(T); ok || err != nil {
			return alive, err
		}
	}
	absent := copyOf(r.Type)
	absent.SetNamespace(req.Namespace)
	absent.SetName(req.Name)
	return absent, nil
}

// remember keeps what the server answered last, so that a cache that lags behind is noticed. Version is the resource
// version that the object had when it was read.
func (r *AggregateReconciler[T]) remember(
	ctx context.Context, req Request, p *requestState, version string, managed T,
) {
	written := p.stored
	if !gotype.IsNil(managed) {
		// The next request finds an object with a UID. Without this, it would start with a new state.
		r.states.SetUID(req.NamespacedName, p.resource, managed.GetUID())
		written = managed
	}
	if written.GetResourceVersion() != version {
		p.resource.Wrote(written.DeepCopyObject().(client.Object), version == "", rtime.RetrieveNow(ctx))
	}
}
