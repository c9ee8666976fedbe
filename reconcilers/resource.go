package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/statusfield"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ResourceReconciler is the root of a tree that reconciles resources of one type. It is an ordinary
// [reconcile.Reconciler].
//
// For each request it fetches the resource, fills in its defaults, initialises its conditions, runs the tree with a
// fresh stash, and writes the status if the tree changed it:
//
//   - Runs: the tree, for each resource that exists. The tree is not run for a terminating resource without finalizers,
//     because nothing is left to clean up.
//   - Stops: when SkipRequest or SkipResource returns true, when BeforeReconcile returns an error, and when the
//     resource is gone.
//   - On error: the status is written, without the observed generation. The error is returned, whether or not the write
//     succeeded. It is returned without a delay, because controller-runtime ignores a delay beside an error. A quiet
//     error becomes a requeue with back-off. A durable error is not retried; only a RequeueAfter that was set is kept.
//     An error of the tree is returned as an [Error], which has the path of the node. A panic of a node is such an
//     error, unless the manager is configured not to recover from panics. The stack is logged. The conditions that the
//     node describes, and the SummaryCondition, or else the condition Ready if there is one, are then False, with the
//     reason Error, because nobody has looked.
//   - On deletion: runs the tree, so that its nodes clean up. The status is written only with
//     SyncStatusDuringFinalization, and not once the tree has removed the last finalizer.
//
// The status counts as changed if it differs by [k8s.io/apimachinery/pkg/api/equality.Semantic]. The root maintains
// these parts of a status that has them: the method InitializeConditions(context.Context) is called before the tree
// runs; ObservedGeneration (int64) is set to the generation after the tree ran without an error; Conditions
// ([]metav1.Condition) keep their transition times when a condition changes and changes back in one request.
//
// The root remembers for each resource the writes that the cache does not show yet, and what the server adds to the
// children. It forgets them when a request finds the resource gone, so events of deletions must reach the controller.
//
// If the cache shows an older state of the resource than the root has written, the tree sees the resource as written.
//
// A successful write of the status causes an event, which brings the resource back. So a delay that the tree asked for,
// and the requeue of a halt, are dropped then, as reconciler.io/runtime does. Set KeepResultAfterStatusUpdate if such
// events do not reach the controller.
type ResourceReconciler[Type client.Object] struct {
	// Name identifies the root in paths and logs; it is not the name of the controller. Default: the kind followed by
	// ResourceReconciler.
	Name string

	// ControllerName is the name of the controller in metrics and logs. Controller-runtime requires that it is unique
	// in a program, so two roots for one kind need different names. Default: the kind in lower case.
	ControllerName string

	// Setup adds watches and indexes, before those of the tree. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SetupForOptions are given to the builder for the resource's own watch. Optional.
	SetupForOptions []builder.ForOption

	// Type is an object of the resource's type. It is required for unstructured and duck types, which have to carry
	// their kind. Default: an empty Type.
	Type Type

	// SkipStatusUpdate never writes the status. Default: false.
	SkipStatusUpdate bool

	// SyncStatusDuringFinalization writes the status of terminating resources too. Default: false.
	SyncStatusDuringFinalization bool

	// PatchStatusAlone limits the patch that writes the status of a duck type: it has the status only, and the resource
	// version. If the resource has another version by then, the write is a conflict, as for an update. Other types are
	// always updated. Default: false, so the patch has everything that differs from the fetched resource, defaults
	// included, and applies to any version.
	PatchStatusAlone bool

	// KeepResultAfterStatusUpdate keeps the result of the tree even if the status was written, and requeues if the
	// write of the status met a conflict. Set it for a controller whose predicates filter the events of status changes.
	// Default: false.
	KeepResultAfterStatusUpdate bool

	// SkipStatusEvents records no event when the status was written. A failed write is always recorded. Set it if the
	// tree records events of its own. Default: false.
	SkipStatusEvents bool

	// SkipForbiddenRetry does not retry a child that the API server refused as Forbidden, until an event brings the
	// resource back. The refusal may end without such an event: a quota is raised, or a right is granted. So by default
	// the request is repeated with the back-off of the queue, also after the status was written. A delay of the tree of
	// more than a minute gives way to that. Set it for a tree of reconciler.io/runtime whose tests compare the result.
	// Default: false.
	SkipForbiddenRetry bool

	// SkipFinalizerEvents records no event when a node of the tree has added or removed a finalizer of the resource. A
	// failure is always recorded. Clients of Kubernetes drop events of an object that has many, so routine events hide
	// others. Default: false.
	SkipFinalizerEvents bool

	// TakeOverFrom are the names of field managers under which an earlier release of the controller created and updated
	// children. All nodes that apply objects take over from them, as with the TakeOverOnce of
	// [ApplyingObjectManager]. Optional.
	TakeOverFrom []string

	// ErrorCondition is the type of a condition that shows an error that the tree returned: it is False then, the
	// reason is the [Class] of the error, and the message has the path of the node, the object, and the text of the
	// error, up to 1 KiB. It is True with the reason Reconciled when the tree returns no error, or a mere halt. Another
	// quiet error and a conflict of a stale cache leave it as it is. Of the text alone, the first three
	// changes are shown at once, and later ones at most once in a minute.
	//
	// The root alone sets the condition, so no node may. It may be the SummaryCondition, which then sums up the nodes
	// while there is no error. The status must have Conditions. Default: none.
	ErrorCondition string

	// SummaryCondition is the type of a condition that sums up the conditions that the nodes of the tree set, see
	// [Description]: it is False like the worst of them that is False, else Unknown like the first that is Unknown,
	// else True. What is worst the reasons say: a refusal of the API server, an object that is not ours, a failure,
	// what is blocked, what waits, what is in progress; of equals the first in the order of the tree counts. It is True
	// with the reason Suspended if one of them is. If all are True, a child that somebody has deleted, and that a
	// finalizer keeps, makes it False with the reason Terminating. While the resource is terminating, it is False with
	// that reason, and names the finalizers that are left when all of the tree are off. A condition that no node sets
	// then is Unknown with that reason.
	//
	// With it the root also keeps the conditions of the nodes true. A condition that is missing when the status is
	// written is Unknown, with the reason Initializing, unless its node is not needed (see [NotNeeded]). A condition
	// that no node has set in a request is Unknown, with the reason Waiting, if a node has halted, or if the condition
	// is about an older generation of the resource. After an error it stays as it is otherwise. Default: none.
	SummaryCondition string

	// Reconciler is the tree. Required.
	Reconciler SubReconciler[Type]

	// BeforeReconcile is called before the resource is fetched. If the context that it returns is not nil, it is used
	// for the rest of the request. The result is aggregated with the result of the tree. An error ends the request.
	// Optional.
	BeforeReconcile func(ctx context.Context, req Request) (context.Context, Result, error)

	// AfterReconcile is called last and may replace the outcome. It is not called if BeforeReconcile returned an error.
	// Optional.
	AfterReconcile func(ctx context.Context, req Request, res Result, err error) (Result, error)

	// SkipRequest ignores a request before anything is done about it. Optional.
	SkipRequest func(ctx context.Context, req Request) bool

	// SkipResource ignores a resource after it was fetched and its defaults were filled in. Optional.
	SkipResource func(ctx context.Context, resource Type) bool

	// Config is what the tree works with. Required for all but Validate.
	Config Config

	root

	initOnce sync.Once

	// retired are the types of [ResourceReconciler.Retires].
	retired []string
}

var _ reconcile.Reconciler = (*ResourceReconciler[client.Object])(nil)

func (r *ResourceReconciler[T]) init() {
	r.initOnce.Do(func() {
		r.Type = defaultType(r.Type)
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sResourceReconciler", typeName(r.Type))
		}
	})
}

func (r *ResourceReconciler[T]) parts() rootParts[T] {
	return rootParts[T]{
		kind:               "ResourceReconciler",
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
		takeOverFrom:        r.TakeOverFrom,
	}
}

func (r *ResourceReconciler[T]) check(parts *rootParts[T]) error {
	if gotype.IsNil(r.Reconciler) {
		return parts.errorf("must define Reconciler")
	}
	return parts.checkType()
}

// SetupWithManager builds a controller for the tree and adds it to the manager.
func (r *ResourceReconciler[T]) SetupWithManager(ctx context.Context, mgr Manager) error {
	_, err := r.SetupWithManagerYieldingController(ctx, mgr)
	return err
}

// SetupWithManagerYieldingController is [ResourceReconciler.SetupWithManager] and returns the controller, so that
// watches can be added while it runs. The whole tree is validated first.
//
// When the controller starts, resources that are known to need a request come before those that are as they should be:
// those that are being deleted, whose generation is not the observed one, or whose condition Ready or Succeeded is not
// True.
func (r *ResourceReconciler[T]) SetupWithManagerYieldingController(
	ctx context.Context, mgr Manager,
) (controller.Controller, error) {
	r.init()
	r.identify(r.Name)
	parts := r.parts()
	return parts.setUp(ctx, mgr, rootSetup{
		root:     r,
		validate: r.Validate,
		watch: func(bldr *Builder) {
			obj := watchable(r.Type, mgr.GetScheme())
			r.watches.watchResources(bldr, obj, &r.orphaned, r.SetupForOptions)
			watchShard(mgr, bldr, r.Config, obj)
		},
	})
}

// Validate checks that the required fields are set and, if recursive, the tree. It logs what the status of the type
// lacks.
func (r *ResourceReconciler[T]) Validate(ctx context.Context) error {
	r.init()
	parts := r.parts()
	if err := r.check(&parts); err != nil {
		return err
	}
	if err := r.checkConditions(&parts); err != nil {
		return err
	}
	if err := parts.validateTree(ctx); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	for _, remark := range statusfield.Describe(reflect.TypeOf(r.Type), r.SummaryCondition != "") {
		log.Info(remark)
	}
	return nil
}

// Describe returns a description of the tree, and of what the root itself does with the resource.
func (r *ResourceReconciler[T]) Describe() Description {
	r.init()
	parts := r.parts()
	if r.SkipStatusUpdate {
		return parts.describe()
	}
	return parts.describe(Access{Object: r.Type, Subresource: "status", Verbs: []string{"get", "update", "patch"}})
}

// Reconcile handles one request, see [ResourceReconciler].
func (r *ResourceReconciler[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	r.init()
	parts := r.parts()
	if err := r.check(&parts); err != nil {
		return Result{}, err
	}
	if r.Config.shard != nil && (r.SkipRequest != nil || r.BeforeReconcile != nil) {
		parts.first = r.giveBackFirst
	}
	return parts.handleRequest(ctx, req, r.SkipRequest, r.reconcile)
}

// reconcile fetches the resource, runs the tree, and writes the status.
func (r *ResourceReconciler[T]) reconcile(ctx context.Context, req Request, p *requestState) (Result, error) {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return Result{}, err
	}
	original := copyOf(r.Type)
	if err := r.fetch(ctx, config, req, original); err != nil {
		if apierrs.IsNotFound(err) {
			r.forget(ctx, config, r.Type, req)
			return Result{}, nil
		}
		return Result{}, err
	}
	now := rtime.RetrieveNow(ctx)
	p.resource = r.states.Of(original)
	original = resolve(ctx, p, original)
	if gone, err := r.notForShard(ctx, config, req, original); gone {
		return Result{}, err
	}
	if original, err = r.noteOrphan(ctx, config, p, original); err != nil {
		return Result{}, err
	}
	resource := copyOf(original)
	p.stored, p.resourceSeen = original, resource
	if err := applyDefaults(ctx, resource); err != nil {
		return Result{}, err
	}
	if r.SkipResource != nil && r.SkipResource(ctx, resource) {
		p.resourceSeen = nil
		Note(ctx, Forgotten{})
		return Result{}, nil
	}
	if resource.GetGeneration() != 0 {
		ctx = apis.StashGeneration(ctx, resource.GetGeneration())
	}
	statusfield.Of(resource).InitializeConditions(ctx)
	p.described = r.describedConditions(r.Reconciler, r.SummaryCondition)
	if r.SummaryCondition != "" {
		r.initializeSummary(ctx, p, resource)
	}

	result, err := r.run(ctx, config, p, resource)
	if len(r.retired) > 0 {
		Retire(ctx, resource, r.retired...)
	}
	if r.SummaryCondition != "" {
		r.summarize(ctx, p, resource, err)
	}
	if r.ErrorCondition != "" {
		r.showError(ctx, p, original, resource, err)
	}
	r.showPanic(ctx, p, resource, r.SummaryCondition, r.ErrorCondition)
	if !r.SkipStatusUpdate {
		result, err = r.writeChangedStatus(ctx, config, original, resource, result, err)
	}
	if p.written {
		p.resource.Wrote(p.stored.DeepCopyObject().(client.Object), false, now)
	}
	return result, err
}

// writeChangedStatus writes the status if it changed. It returns the outcome of the request.
func (r *ResourceReconciler[T]) writeChangedStatus(
	ctx context.Context, config Config, original, resource T, result Result, err error,
) (Result, error) {
	changed, normalizeErr := r.statusChanged(original, resource, err)
	if normalizeErr != nil {
		return result, joinLoud(err, normalizeErr)
	}
	if !changed {
		return result, err
	}
	return r.writeStatus(ctx, config, original, resource, result, err)
}

// resolve returns the resource as the root has written it, if the cache shows an older state.
func resolve[T client.Object](ctx context.Context, p *requestState, cached T) T {
	known, ok := p.resource.Resolve(cached, rtime.RetrieveNow(ctx)).(T)
	if !ok {
		return cached
	}
	if p.observers != nil && known.GetResourceVersion() != cached.GetResourceVersion() {
		Note(ctx, Lagging{})
	}
	return known
}

// fetch reads the resource for comparison. It may share memory with the cache and must not be changed.
func (r *ResourceReconciler[T]) fetch(ctx context.Context, config Config, req Request, original T) error {
	// A type without a kind of its own is no duck. This is quicker than to ask the scheme.
	isDuck := !r.Type.GetObjectKind().GroupVersionKind().Empty() && duck.IsDuck(r.Type, config.Scheme())
	if _, isUnstructured := any(r.Type).(runtime.Unstructured); isUnstructured || isDuck {
		// Reads of ducks and of unstructured content convert the objects, which modifies them.
		return config.Get(ctx, req.NamespacedName, original)
	}
	if err := config.Get(ctx, req.NamespacedName, original, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if kind := original.GetObjectKind(); kind.GroupVersionKind().Empty() {
		// A cache sets the kind only on its copies.
		kind.SetGroupVersionKind(kindOf(config.Client, original))
	}
	return nil
}

// statusChanged reports whether the status has to be written: the tree changed it, the resource is still there, and err
// does not forbid it.
func (r *ResourceReconciler[T]) statusChanged(original, resource T, err error) (bool, error) {
	if err := normalize(resource); err != nil {
		return false, err
	}
	before, after := statusfield.Of(original), statusfield.Of(resource)
	after.KeepTransitionTimes(before)
	inFinalization := resource.GetDeletionTimestamp() != nil
	// When the last finalizer is removed, the resource is gone.
	gone := inFinalization && len(resource.GetFinalizers()) == 0
	if gone || inFinalization && !r.SyncStatusDuringFinalization || errors.Is(err, ErrSkipStatusUpdate) {
		return false, nil
	}
	return after.Differs(before), nil
}

// run runs the tree in a round of the tracker. If the tree returns no error, the tracker forgets what the tree did not
// track in this request.
func (r *ResourceReconciler[T]) run(ctx context.Context, config Config, p *requestState, resource T) (Result, error) {
	var result Result
	var err error
	if resource.GetDeletionTimestamp() == nil || len(resource.GetFinalizers()) > 0 {
		withTrackerRound(config, resource, func() bool {
			result, err = ReconcileNested(ctx, r.Reconciler, resource)
			p.resource.EndRequest(rtime.RetrieveNow(ctx))
			return err == nil
		})
	}
	if err == nil {
		// Each node has looked for its children.
		forgetArrival(ctx, config)
	}
	if err == nil || isHalt(err) {
		statusfield.Of(resource).SetObservedGeneration(resource.GetGeneration())
	}
	return result, err
}
