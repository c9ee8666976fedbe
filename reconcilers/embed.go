package reconcilers

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Embedded runs nodes in a hand-written reconciler. [Embed] makes it. It does for its nodes what a root does, but the
// hand-written reconciler reads the resource, and writes its status:
//
//	type ShopReconciler struct {
//		client.Client
//		children *reconcilers.Embedded[*v1.Shop]
//	}
//
//	func (r *ShopReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
//		config := reconcilers.NewConfig(mgr, &v1.Shop{}, 0)
//		r.children = reconcilers.Embed(config, deployment, service)
//		bldr := ctrl.NewControllerManagedBy(mgr).For(&v1.Shop{})
//		if err := r.children.SetupWithManager(ctx, mgr, bldr); err != nil {
//			return err
//		}
//		return bldr.Complete(r)
//	}
//
//	func (r *ShopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
//		shop := &v1.Shop{}
//		if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
//			r.children.Forget(req)
//			return ctrl.Result{}, client.IgnoreNotFound(err)
//		}
//		result, err := r.children.Reconcile(ctx, shop)
//		...
//	}
type Embedded[Type client.Object] struct {
	// Name is the first segment of the paths of the nodes. Default: Embedded.
	Name string

	// Type is an object of the resource's type. It is required for unstructured and duck types, which have to carry
	// their kind. Default: an empty Type.
	Type Type

	// Config is what the nodes work with. Required.
	Config Config

	// Reconciler is the node, or a [Sequence] of nodes. Required.
	Reconciler SubReconciler[Type]

	root

	initOnce sync.Once
}

// Embed returns an [Embedded] that runs nodes in order. Keep it as long as the reconciler: it has what the nodes
// remember of the resources.
func Embed[Type client.Object](config Config, nodes ...SubReconciler[Type]) *Embedded[Type] {
	e := &Embedded[Type]{Config: config}
	switch len(nodes) {
	case 0:
	case 1:
		e.Reconciler = nodes[0]
	default:
		e.Reconciler = &List[Type]{Nodes: nodes}
	}
	return e
}

func (e *Embedded[T]) init() {
	e.initOnce.Do(func() {
		e.Name = cmp.Or(e.Name, "Embedded")
		e.Type = defaultType(e.Type)
		// Two of them in one reconciler work for the same resources. Neither may drop what the other has tracked.
		e.identify(e.Name)
	})
}

func (e *Embedded[T]) parts() rootParts[T] {
	e.init()
	return rootParts[T]{
		kind:         "Embedded",
		name:         e.Name,
		resourceType: e.Type,
		config:       e.configOf(e.Config),
		watches:      e.watches,
		observed:     &e.observed,
		tree:         e.Reconciler,
	}
}

func (e *Embedded[T]) check(parts *rootParts[T]) error {
	if gotype.IsNil(e.Reconciler) {
		return parts.errorf("must define Reconciler")
	}
	if err := parts.checkConfig(); err != nil {
		return err
	}
	return parts.checkType()
}

// SetupWithManager validates the nodes and adds their watches to bldr, the builder of the hand-written reconciler. It
// watches neither the resource nor what the hand-written code reads. Without this call the nodes work, but no event of
// a child or of a tracked object wakes the resource.
func (e *Embedded[T]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	parts := e.parts()
	if err := e.check(&parts); err != nil {
		return err
	}
	if err := parts.checkUnsharded(mgr, "the hand-written reconciler would not give resources back"); err != nil {
		return err
	}
	ctx = parts.prepare(ctx, Request{}, nil)
	beforeSetup := derive(ctx, func(s *treeContext) { s.beforeSetup = true })
	if err := parts.validateTree(validation.WithRecursive(beforeSetup)); err != nil {
		return err
	}
	kind := func(obj client.Object) schema.GroupVersionKind { return kindOf(e.Config.Client, obj) }
	if err := checkTree(ctx, e.Describe(), parts.resourceType, kind); err != nil {
		return parts.errorf("%w", err)
	}
	if bldr == nil {
		return parts.errorf("must be set up with a builder: %w", errNoBuilder)
	}
	return parts.setUpTree(ctx, mgr, bldr, nil)
}

// Reconcile runs the nodes for resource, which the hand-written reconciler has read, in one request.
//
//   - Runs: the nodes, also for a terminating resource, so that they clean up. The nodes may change resource, and write
//     its finalizers. The hand-written reconciler writes the status afterwards, also after an error.
//   - On error: the error is what a root would return. A quiet error, such as a halt, becomes a requeue with back-off;
//     a durable error becomes the result alone. Return the result and the error to controller-runtime.
//
// The context needs nothing: the config, the request, the type, the time and an empty stash are added, and what the
// context has of an outer tree is replaced. A time that the context has already is kept.
func (e *Embedded[T]) Reconcile(ctx context.Context, resource T) (Result, error) {
	parts := e.parts()
	if err := e.check(&parts); err != nil {
		return Result{}, err
	}
	if gotype.IsNil(resource) {
		return Result{}, parts.errorf("has no resource to reconcile")
	}
	p := &requestState{
		resource: e.states.Of(resource), described: e.describedConditions(e.Reconciler, ""),
		leavePanics: e.watches.leavePanics(), observers: parts.config.observers, resourceSeen: resource,
	}
	req := Request{NamespacedName: client.ObjectKeyFromObject(resource)}
	ctx = rtime.StashNow(stash.WithContext(ctx), time.Now())
	ctx = parts.prepare(ctx, req, p)
	if resource.GetGeneration() != 0 {
		ctx = apis.StashGeneration(ctx, resource.GetGeneration())
	}
	return parts.request(ctx, req, p, func(ctx context.Context) (Result, error) {
		return e.run(ctx, parts.config, p, resource)
	})
}

// run runs the nodes.
func (e *Embedded[T]) run(ctx context.Context, config Config, p *requestState, resource T) (result Result, err error) {
	withTrackerRound(config, resource, func() bool {
		result, err = ReconcileNested(ctx, e.Reconciler, resource)
		p.resource.EndRequest(rtime.RetrieveNow(ctx))
		return err == nil
	})
	e.showPanic(ctx, p, resource, "", "")
	return p.reschedule(result, false), err
}

// Forget drops what is kept of a resource that is gone. The hand-written reconciler calls it when it does not find the
// resource of a request.
func (e *Embedded[T]) Forget(req Request) {
	parts := e.parts()
	if observers := parts.config.observers; observers != nil {
		observers.note(StashRequest(context.Background(), req), parts.rootNode(), Forgotten{})
	}
	e.forget(context.Background(), parts.config, e.Type, req)
}

// Validate checks that the required fields are set and, if recursive, the nodes.
func (e *Embedded[T]) Validate(ctx context.Context) error {
	parts := e.parts()
	if err := e.check(&parts); err != nil {
		return err
	}
	return parts.validateTree(ctx)
}

var _ validation.Validator = (*Embedded[client.Object])(nil)

// Describe returns a description of the nodes. The RBAC rules that are derived from it lack what the hand-written
// reconciler does itself: to read the resource, and to write its status.
func (e *Embedded[T]) Describe() Description {
	parts := e.parts()
	return Description{
		Kind: parts.kind, Name: parts.name, Detail: typeName(e.Type), Resource: e.Type,
		Uses: []Access{recordsEvents}, Order: &Order{}, Nodes: []Description{Describe(e.Reconciler)},
	}
}
