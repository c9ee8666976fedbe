package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// ChildReconciler keeps one child object of the resource as it should be: it creates the child, updates it, deletes it
// when it is not desired any more, and deletes extra ones.
//
//   - Runs: looks the child up through the cache, asks DesiredChild, has the object manager make them agree, and
//     reflects the child on the resource.
//   - Stops: never on its own.
//   - On error: an error whose API reason is among ReflectedChildErrorReasons is reflected on the resource and not
//     returned, because only the user can remove its cause. Every other error is returned, and not reflected. After a
//     Forbidden the root has the request repeated with back-off, unless its field SkipForbiddenRetry is set.
//   - On deletion: deletes the child, without asking DesiredChild, and reflects nothing. An owned child would go with
//     the resource anyway; one without an owner reference needs a Finalizer.
//   - On [Withdraw]: deletes the child, without asking DesiredChild, and reflects what is left of it. A [Supervisor] is
//     told of the child, and of its error, in each request. A child that was just deleted counts as terminating.
//
// The resource controls its child by an owner reference, and only an object that it controls counts as its child. If
// several nodes of a tree have children of one type, each needs LabelChildren or OurChild to find its own. The set-up
// of the root refuses nodes that have neither, unless only one of them runs in a request, in a branch of an [IfThen],
// or they have different configs. If nevertheless two nodes count one object as their child in a request, and would
// write it, the second one returns an error that names both. If more than one object is the child of this node, all are
// deleted and the desired one is created anew. A terminating child is not written. It is reflected as long as it
// exists, it counts only if there is no other, and the desired child is created when it is gone.
//
// By default the name of the desired child counts only when the child is created. As long as there is a child, the node
// writes what is desired to it, whatever its name. With Renaming the name counts.
//
// The name may be a generateName. If the answer to such a create is lost, the requests of a root ask the API server for
// the children until the cache shows them: it would not refuse to create another one.
//
// While nothing changes, the node makes no request. The child is read from the cache: through an index by owner if
// [NewConfig] made the config, else by listing the namespace. Nodes with children of one type share what was read in a
// request. If the manager's client reads a type past its cache, each request to the root costs a request to the API
// server. These are unstructured and duck types, unless OptionalKind is set or the client's cache options include them,
// and the types that the options exclude.
//
// An object of the desired name that is not a child of this node is not written. The error is reflected, with reason
// AlreadyExists, and the resource is woken when that object changes. Without owner references, the resource is woken
// only if the node uses the short form, or an object manager with TrackDesired.
type ChildReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies the node in paths and logs. Default: the child's kind followed by ChildReconciler.
	Name string

	// ChildType is an object of the child's type. It is required for unstructured and duck types, which have to carry
	// their kind. Default: an empty ChildType.
	ChildType ChildType
	// ChildListType is a list of the child's type, required where ChildType is. Default: an empty ChildListType or, if
	// that type parameter is [client.ObjectList], the list type of the scheme.
	ChildListType ChildListType

	// Finalizer, MergeBeforeUpdate and Sanitize are the short form of an [UpdatingObjectManager] as ChildObjectManager,
	// which must then be nil. Finalizer implies SkipOwnerReference, and the child is tracked instead.
	Finalizer string
	// MergeBeforeUpdate copies onto current what is desired. See Finalizer.
	MergeBeforeUpdate func(current, desired ChildType)
	// Sanitize returns what may be logged of a child. See Finalizer.
	Sanitize func(child ChildType) interface{}

	// SkipOwnerReference creates the child without an owner reference. It is for a child in another namespace or
	// cluster, and for a child that outlives the resource. ListOptions and OurChild then have to find the child.
	// Default: false.
	SkipOwnerReference bool

	// Setup adds watches and indexes beyond the watch of the child's type. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChild returns the child as it should be, or nil if there should be none. It must not depend on the time,
	// on random values or on the order of a map, else the child is written again and again. Below a root, it is written
	// with delays after five such writes in a minute, and an error is reflected that names the first field that
	// changes. With the error [OnlyReconcileChildStatus], the child is not written but reflected. The node may change
	// the returned object. DesiredChild is not called for a terminating resource, nor on [Withdraw]. Required.
	DesiredChild func(ctx context.Context, resource Type) (ChildType, error)

	// ReflectChildStatusOnParent writes the state of the child into the resource. The child is nil if there is none,
	// and err is an error to reflect. Both are set only if err is a [NameError]. It must not change the child. One of
	// the three ReflectChildStatusOnParent functions is required.
	ReflectChildStatusOnParent func(ctx context.Context, parent Type, child ChildType, err error)
	// ReflectChildStatusOnParentWithError is ReflectChildStatusOnParent with an error, which is returned. It takes
	// precedence over ReflectChildStatusOnParent.
	ReflectChildStatusOnParentWithError func(ctx context.Context, parent Type, child ChildType, err error) error

	// ReflectChildStatusOnParentWithResult is ReflectChildStatusOnParentWithError with a result, to ask for a delay:
	// for a child that expires, or sends no event when it is ready. It takes precedence over the other two.
	ReflectChildStatusOnParentWithResult func(
		ctx context.Context, parent Type, child ChildType, err error,
	) (Result, error)

	// ReflectedChildErrorReasons are the API reasons of errors that are reflected rather than returned. Default (nil):
	// AlreadyExists, Forbidden, Invalid. Empty: none.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ChildObjectManager creates, updates and deletes the child. Required, unless the short form is used.
	ChildObjectManager ObjectManager[ChildType]

	// RecreateImmutable deletes the child and creates it again if the API server refuses as invalid a change that is
	// possible in no other way, as a rule the change of an immutable field. That is done only if the refusal names a
	// field that is desired with another value, and if a dry run shows that the API server would accept what is desired
	// as a new object; a field that is only left out is no proof. The delete applies to the very version that was read.
	// An event Recreating says why, and what the child holds (Pods, say) goes with it. It is done once for what is
	// desired: if the new child is refused too, the error is reflected. Default: false.
	RecreateImmutable bool

	// Renaming says what becomes of the child if another namespace or name is desired. A release of the operator
	// without this field that finds objects of two names deletes both and creates its own. Default: [IgnoreName].
	Renaming Renaming
	// ChildIsReady reports whether a child is ready, so that one of another name may go. It is called again when the
	// child changes, and must not change it. Package health has rules for each kind. Required with [ByKind].
	// Default: each child is ready.
	ChildIsReady func(ctx context.Context, child ChildType) bool

	// Conditions are the types of the conditions that the function sets which reflects the child. A SummaryCondition
	// of the root counts them. Optional.
	Conditions []string

	// ListOptions narrow where the child is looked for. Default: the resource's namespace. Required with
	// SkipOwnerReference.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is this node's child. It must not change the object. Default: each object that
	// the resource controls, or with LabelChildren each of them with the label. Required with SkipOwnerReference.
	OurChild func(resource Type, child ChildType) bool

	// LabelChildren labels the child with [NodeLabel] and the name of the node. Only an object with that label counts
	// as the child of this node, so several nodes may have children of one type without OurChild. An object without the
	// label counts too, if it has the name of the desired child and would be the child otherwise: it was made before
	// the child was labelled. The object manager has to write the labels, as the short form and an
	// [ApplyingObjectManager] do. Name has to be the value of a label, unique among the nodes with children of the
	// type. Do not change it later. Default: false.
	LabelChildren bool

	// OptionalKind lets the node work in clusters that do not serve the child's type. It is then watched when it is
	// needed first, see [WatchOptional], unless it is a type of Kubernetes itself. Unstructured and duck types are read
	// from the cache then, unless the client of the config was replaced. While the type is not served, nothing
	// happens if no child is desired. Otherwise a [KindNotServedError] is reflected, whatever
	// ReflectedChildErrorReasons are, and the resource is woken when the type is served. Default (false): the manager
	// stops if the type is not served.
	OptionalKind bool

	initOnce sync.Once
	children *children[Type, ChildType, ChildListType]
	invalid  error
}

var _ SubReconciler[client.Object] = (*ChildReconciler[client.Object, client.Object, client.ObjectList])(nil)

func (r *ChildReconciler[T, CT, CLT]) init() {
	r.initOnce.Do(func() {
		r.ChildType, r.ChildListType = defaultChildTypes(r.ChildType, r.ChildListType)
		r.ReflectedChildErrorReasons = defaultReasons(r.ReflectedChildErrorReasons)
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sChildReconciler", typeName(r.ChildType))
		}
		r.children = &children[T, CT, CLT]{
			kind: "ChildReconciler", name: r.Name, node: r,
			childType: r.ChildType, listType: r.ChildListType,
			manager:     r.ChildObjectManager,
			unowned:     r.SkipOwnerReference || r.Finalizer != "",
			tracked:     tracksDesired(r.ChildObjectManager),
			reasons:     r.ReflectedChildErrorReasons,
			listOptions: r.ListOptions,
			ourChild:    r.OurChild,
			recreates:   r.RecreateImmutable,
			renaming:    r.Renaming,
			ready:       r.ChildIsReady,
			optional:    r.OptionalKind,
		}
		if r.LabelChildren {
			r.children.label = r.Name
		}
		r.children.useShortForm(r.Finalizer, r.MergeBeforeUpdate, r.Sanitize)
		r.invalid = r.check()
	})
}

// SetupWithManager validates, watches the child's type, indexes it by owner, and sets up the object manager.
func (r *ChildReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return r.children.setUp(ctx, mgr, bldr, r.Setup)
}

// Validate checks that the fields are set as they must be and, if recursive, the object manager.
func (r *ChildReconciler[T, CT, CLT]) Validate(ctx context.Context) error {
	r.init()
	if r.invalid != nil {
		return r.invalid
	}
	return r.children.validate(ctx)
}

func (r *ChildReconciler[T, CT, CLT]) check() error {
	reflects := r.ReflectChildStatusOnParent != nil ||
		r.ReflectChildStatusOnParentWithError != nil || r.ReflectChildStatusOnParentWithResult != nil
	shortForm := r.MergeBeforeUpdate != nil || r.Finalizer != "" || r.Sanitize != nil
	switch {
	case r.DesiredChild == nil:
		return r.children.errorf("must implement DesiredChild")
	case !reflects:
		return r.children.errorf("must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError")
	}
	if err := r.children.checkRenaming(); err != nil {
		return err
	}
	both := shortForm && !gotype.IsNil(r.ChildObjectManager)
	return r.children.check("", both, "Finalizer, MergeBeforeUpdate or Sanitize")
}

// Reconcile makes the child as it should be, see [ChildReconciler]. It returns the result of
// ReflectChildStatusOnParentWithResult. Without that function the result is empty.
func (r *ChildReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.invalid != nil {
		return Result{}, r.invalid
	}
	ctx = Enter(ctx, r.Name)
	s := supervisionIn(ctx, resource)
	ctx, config, found, err := r.children.find(ctx, resource)
	if err != nil {
		r.children.observe(ctx, config, s, outcome[CT]{err: err})
		return Result{}, err
	}

	var desired CT
	terminating := resource.GetDeletionTimestamp() != nil
	if !terminating && s.says != Withdraw {
		desired, err = r.DesiredChild(ctx, resource)
	}
	if err == nil {
		found, err = r.children.withUnlabelled(ctx, config, resource, found, desired)
	}
	if err == nil && s.says == Suspend {
		desired, err = suspend(s, desired)
	}
	kept := errors.Is(err, OnlyReconcileChildStatus)
	t := r.children.rename(ctx, config, resource, found, desired, err)
	child, err := r.children.carryOut(ctx, config, resource, s, &t)
	var result Result
	if !terminating {
		var reflected error
		child, reflected, err = r.children.classify(ctx, config, resource, child, t.desired, err)
		child, reflected = t.withRefusal(ctx, child, reflected)
		r.children.noteHanging(ctx, s, child)
		o := outcome[CT]{found: t.found, desired: t.desired, child: child, kept: kept, err: reflected}
		if err == nil {
			result, err = r.reflectOn(ctx, resource, child, reflected)
			result = aggregateResult(result, Result{RequeueAfter: t.again})
		}
		o.err = cmp.Or(reflected, err)
		r.children.observe(ctx, config, s, o)
	}
	if err != nil {
		recordFailure(ctx, r.children.describe(t.desired), err)
	}
	return result, err
}

func (r *ChildReconciler[T, CT, CLT]) reflectOn(ctx context.Context, resource T, child CT, err error) (Result, error) {
	switch {
	case r.ReflectChildStatusOnParentWithResult != nil:
		return r.ReflectChildStatusOnParentWithResult(ctx, resource, child, err)
	case r.ReflectChildStatusOnParentWithError != nil:
		return Result{}, r.ReflectChildStatusOnParentWithError(ctx, resource, child, err)
	default:
		r.ReflectChildStatusOnParent(ctx, resource, child, err)
		return Result{}, nil
	}
}

// Describe returns what the node does with the child's type.
func (r *ChildReconciler[T, CT, CLT]) Describe() Description {
	r.init()
	return Description{
		Kind:   "ChildReconciler",
		Name:   r.Name,
		Detail: typeName(r.ChildType),
		Uses:   r.children.uses(),

		Conditions: r.Conditions,
		Finalizers: managerFinalizers(r.children.manager),
		children:   r.children.selection(),
	}
}
