package reconcilers

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildReconciler keeps one child object of the resource as it should be: it creates the child, updates it, deletes it
// when it is not desired any more, and deletes extra ones.
//
//   - Runs: looks the child up through the cache, asks DesiredChild, has the object manager make them agree, and
//     reflects the child on the resource.
//   - Stops: never on its own.
//   - On error: an error whose API reason is among ReflectedChildErrorReasons is reflected on the resource and not
//     returned: it is for the user to mend, and another attempt would fail alike. Every other error is returned, and
//     not reflected.
//   - On deletion: deletes the child, without asking DesiredChild, and reflects nothing. An owned child would go with
//     the resource anyway; one without an owner reference needs a Finalizer.
//
// The resource controls its child by an owner reference, and only what it controls counts as its child. Several
// children of one type need OurChild, to tell whose is whose. If more than one object is ours, all are deleted and the
// desired one is created anew. A child that is being deleted is left to go: it is reflected as long as it is there,
// counts only if it is the only one, and the desired one is created when it is gone.
//
// While nothing changes, it makes no request: the child is read from the cache, through an index by owner where
// [NewConfig] made the config, else by listing the namespace. Nodes with children of one type share what was read in a
// request. A type that the manager's client reads past its cache costs a request each time: unstructured and duck
// types, unless the client's cache options say otherwise, and those that they disable the cache for.
//
// An object of the desired name that belongs to somebody else is left alone: the error is reflected, with reason
// AlreadyExists, and the resource is woken when that object changes; without owner references only in the short form.
type ChildReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies the node in paths and logs. Default: the child's kind followed by ChildReconciler.
	Name string

	// ChildType is an object of the child's type. It is required for unstructured and duck types, which have to carry
	// their kind. Default: an empty ChildType.
	ChildType ChildType
	// ChildListType is a list of the child's type, required where ChildType is. Default: an empty ChildListType.
	ChildListType ChildListType

	// Finalizer, MergeBeforeUpdate and Sanitize are the short form of an [UpdatingObjectManager] as ChildObjectManager,
	// which must then be nil. Finalizer implies SkipOwnerReference, and the child is tracked instead.
	Finalizer string
	// MergeBeforeUpdate copies onto current what is desired. See Finalizer.
	MergeBeforeUpdate func(current, desired ChildType)
	// Sanitize returns what may be logged of a child. See Finalizer.
	Sanitize func(child ChildType) interface{}

	// SkipOwnerReference leaves the owner reference away, for a child that may not have it: one in another namespace or
	// cluster, or one that is to outlive the resource. ListOptions and OurChild then have to find it. Default: false.
	SkipOwnerReference bool

	// Setup adds watches and indexes beyond that of the child's type. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChild returns the child as it should be, or nil if there should be none. It must not depend on the time,
	// or on chance, else the child is written in each request. [OnlyReconcileChildStatus] leaves the child as it is and
	// reflects it. The object returned belongs to this node; it is not called for a terminating resource. Required.
	DesiredChild func(ctx context.Context, resource Type) (ChildType, error)

	// ReflectChildStatusOnParent writes onto the resource what the child tells: child is nil if there is none, and err
	// is an error to reflect. It must not change the child. One of the three ReflectChildStatusOnParent functions is
	// required.
	ReflectChildStatusOnParent func(ctx context.Context, parent Type, child ChildType, err error)
	// ReflectChildStatusOnParentWithError is ReflectChildStatusOnParent for those who may fail. It wins over
	// ReflectChildStatusOnParent.
	ReflectChildStatusOnParentWithError func(ctx context.Context, parent Type, child ChildType, err error) error

	// ReflectChildStatusOnParentWithResult is ReflectChildStatusOnParentWithError for those who also ask for a delay: a
	// child that tells nobody when it is ready, or that expires. It wins over the others.
	ReflectChildStatusOnParentWithResult func(
		ctx context.Context, parent Type, child ChildType, err error,
	) (Result, error)

	// ReflectedChildErrorReasons are the API reasons of errors that are reflected rather than returned. Default (nil):
	// AlreadyExists, Forbidden, Invalid. Empty: none.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ChildObjectManager creates, updates and deletes the child. Required, unless the short form is used.
	ChildObjectManager ObjectManager[ChildType]

	// ListOptions narrow where the child is looked for. Default: the resource's namespace. Required with
	// SkipOwnerReference.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild tells whether an object is this node's child. It must not change the object. Default: whatever the
	// resource controls. Required with SkipOwnerReference.
	OurChild func(resource Type, child ChildType) bool

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
			reasons:     r.ReflectedChildErrorReasons,
			listOptions: r.ListOptions,
			ourChild:    r.OurChild,
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
	both := shortForm && !isNilNode(r.ChildObjectManager)
	return r.children.check(both, "Finalizer, MergeBeforeUpdate or Sanitize")
}

// Reconcile makes the child as it should be, see [ChildReconciler]. The result is that of
// ReflectChildStatusOnParentWithResult, empty without it.
func (r *ChildReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.invalid != nil {
		return Result{}, r.invalid
	}
	ctx = Enter(ctx, r.Name)
	config, found, err := r.children.find(ctx, resource)
	if err != nil {
		return Result{}, err
	}

	var desired CT
	terminating := resource.GetDeletionTimestamp() != nil
	if !terminating {
		desired, err = r.DesiredChild(ctx, resource)
	}
	child, err := r.children.converge(ctx, config, resource, found, desired, err)
	var result Result
	if !terminating {
		var reflected error
		child, reflected, err = r.children.classify(ctx, config, resource, child, desired, err)
		if err == nil {
			result, err = r.reflectOn(ctx, resource, child, reflected)
		}
	}
	if err != nil {
		recordFailure(ctx, r.children.describe(desired), err)
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

// Describe tells what the node does with the child's type.
func (r *ChildReconciler[T, CT, CLT]) Describe() Description {
	r.init()
	return Description{
		Kind:   "ChildReconciler",
		Name:   r.Name,
		Detail: typeName(r.ChildType),
		Uses:   r.children.uses(),
	}
}
