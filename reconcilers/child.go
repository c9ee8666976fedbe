package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildReconciler keeps one child object of the resource as it should be: it creates the child, updates it, deletes it when
// it is not desired any more, and deletes extra ones.
//
//   - Runs: looks the child up through the cache, asks DesiredChild, has the object manager make them agree, and reflects the
//     child on the resource.
//   - Stops: never on its own.
//   - On error: an error whose API reason is among ReflectedChildErrorReasons is reflected on the resource and not returned: it
//     is for the user to mend, and another attempt would fail alike. Every other error is returned, and not reflected.
//   - On deletion: deletes the child, without asking DesiredChild, and reflects nothing. An owned child would go with the
//     resource anyway; one without an owner reference needs a Finalizer.
//
// The resource controls its child by an owner reference, and only what it controls counts as its child. Several children of
// one type need OurChild, to tell whose is whose. If more than one object is ours, all are deleted and the desired one is
// created anew.
//
// While nothing changes, it makes no request: the child is read from the cache, through an index by owner where [NewConfig]
// made the config, else by listing the namespace. Nodes with children of one type share what was read in a request. A type that the
// manager's client reads past its cache costs a request each time: unstructured and duck types, unless the client's cache options
// say otherwise, and those that they disable the cache for.
//
// An object of the desired name that belongs to somebody else is left alone: the error is reflected, with reason
// AlreadyExists, and the resource is woken when that object changes.
type ChildReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies the node in paths and logs. Default: the child's kind followed by ChildReconciler.
	Name string

	// ChildType is an object of the child's type. It is required for unstructured and duck types, which have to carry their
	// kind. Default: an empty ChildType.
	ChildType ChildType
	// ChildListType is a list of the child's type, required where ChildType is. Default: an empty ChildListType.
	ChildListType ChildListType

	// Finalizer, MergeBeforeUpdate and Sanitize are the short form of an [UpdatingObjectManager] as ChildObjectManager, which
	// must then be nil. Finalizer implies SkipOwnerReference, and the child is tracked instead.
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

	// DesiredChild returns the child as it should be, or nil if there should be none. It must not depend on the time, or
	// on chance, else the child is written in each request. [OnlyReconcileChildStatus] leaves the child as it is and reflects it. The
	// object returned belongs to this node; it is not called for a terminating resource. Required.
	DesiredChild func(ctx context.Context, resource Type) (ChildType, error)

	// ReflectChildStatusOnParent writes onto the resource what the child tells: child is nil if there is none, and err is an error
	// to reflect. It must not change the child. This or ReflectChildStatusOnParentWithError is required.
	ReflectChildStatusOnParent func(ctx context.Context, parent Type, child ChildType, err error)
	// ReflectChildStatusOnParentWithError is ReflectChildStatusOnParent for those who may fail. It wins where both are set.
	ReflectChildStatusOnParentWithError func(ctx context.Context, parent Type, child ChildType, err error) error

	// ReflectedChildErrorReasons are the API reasons of errors that are reflected rather than returned. Default (nil):
	// AlreadyExists, Forbidden, Invalid. Empty: none.
	ReflectedChildErrorReasons []metav1.StatusReason

	// ChildObjectManager creates, updates and deletes the child. Required, unless the short form is used.
	ChildObjectManager ObjectManager[ChildType]

	// ListOptions narrow where the child is looked for. Default: the resource's namespace. Required with SkipOwnerReference.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild tells whether an object is this node's child. It must not change the object. Default: whatever the resource
	// controls. Required with SkipOwnerReference.
	OurChild func(resource Type, child ChildType) bool

	initOnce sync.Once
	manager  ObjectManager[ChildType]
	invalid  error
}

var _ SubReconciler[client.Object] = (*ChildReconciler[client.Object, client.Object, client.ObjectList])(nil)

func (r *ChildReconciler[T, CT, CLT]) init() {
	r.initOnce.Do(func() {
		r.ChildType = defaultType(r.ChildType)
		r.ChildListType = defaultType(r.ChildListType)
		if list, ok := any(r.ChildListType).(*unstructured.UnstructuredList); ok && list != nil && list.GetKind() == "" && !isNil(r.ChildType) {
			gvk := r.ChildType.GetObjectKind().GroupVersionKind()
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		}
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sChildReconciler", typeName(r.ChildType))
		}
		if r.ReflectedChildErrorReasons == nil {
			r.ReflectedChildErrorReasons = []metav1.StatusReason{
				metav1.StatusReasonAlreadyExists,
				metav1.StatusReasonForbidden,
				metav1.StatusReasonInvalid,
			}
		}
		r.manager = r.ChildObjectManager
		if isNilNode(r.ChildObjectManager) && r.MergeBeforeUpdate != nil {
			r.manager = &UpdatingObjectManager[CT]{
				Name:              r.Name,
				Type:              r.ChildType,
				Finalizer:         r.Finalizer,
				TrackDesired:      r.skipOwnerReference(),
				MergeBeforeUpdate: r.MergeBeforeUpdate,
				Sanitize:          r.Sanitize,
			}
		}
		r.invalid = r.check()
	})
}

func (r *ChildReconciler[T, CT, CLT]) skipOwnerReference() bool {
	return r.SkipOwnerReference || r.Finalizer != ""
}

// SetupWithManager validates, watches the child's type, indexes it by owner, and sets up the object manager.
func (r *ChildReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if !r.skipOwnerReference() {
		if err := r.watchOwned(ctx, mgr, bldr); err != nil {
			return fmt.Errorf("ChildReconciler %q is unable to watch %s: %w", r.Name, typeName(r.ChildType), err)
		}
	}
	if err := r.manager.SetupWithManager(ctx, mgr, bldr); err != nil {
		return err
	}
	if r.Setup == nil {
		return nil
	}
	return r.Setup(ctx, mgr, bldr)
}

func (r *ChildReconciler[T, CT, CLT]) watchOwned(ctx context.Context, mgr Manager, bldr *Builder) error {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	if err := watchOwned(ctx, mgr, bldr, r.ChildType); err != nil {
		return err
	}
	if err := watchTracked(ctx, bldr, r.ChildType); err != nil {
		return err
	}
	return config.owners.register(ctx, config.Client, r.ChildType)
}

// Validate checks that the fields are set as they must be and, if recursive, the object manager.
func (r *ChildReconciler[T, CT, CLT]) Validate(ctx context.Context) error {
	r.init()
	if r.invalid != nil {
		return r.invalid
	}
	if err := validateNested(ctx, r.manager); err != nil {
		return fmt.Errorf("ChildReconciler %q must have a valid ChildObjectManager: %w", r.Name, err)
	}
	return nil
}

func (r *ChildReconciler[T, CT, CLT]) check() error {
	switch {
	case r.DesiredChild == nil:
		return fmt.Errorf("ChildReconciler %q must implement DesiredChild", r.Name)
	case r.ReflectChildStatusOnParent == nil && r.ReflectChildStatusOnParentWithError == nil:
		return fmt.Errorf("ChildReconciler %q must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError", r.Name)
	case r.skipOwnerReference() && r.OurChild == nil:
		return fmt.Errorf("ChildReconciler %q must implement OurChild since owner references are not used", r.Name)
	case r.skipOwnerReference() && r.ListOptions == nil:
		return fmt.Errorf("ChildReconciler %q must implement ListOptions since owner references are not used", r.Name)
	case isNilNode(r.manager):
		return fmt.Errorf("ChildReconciler %q must implement ChildObjectManager", r.Name)
	case !isNilNode(r.ChildObjectManager) && (r.MergeBeforeUpdate != nil || r.Finalizer != "" || r.Sanitize != nil):
		return fmt.Errorf("ChildReconciler %q may not implement both ChildObjectManager and Finalizer, MergeBeforeUpdate or Sanitize", r.Name)
	}
	return r.checkTypes()
}

// checkTypes finds generic types that fit the signature and nothing else, which the compiler cannot.
func (r *ChildReconciler[T, CT, CLT]) checkTypes() error {
	if isNil(r.ChildType) {
		return fmt.Errorf("ChildReconciler %q must define ChildType since none can be made of %s", r.Name, reflect.TypeFor[CT]())
	}
	if lacksKind(r.ChildType) {
		return fmt.Errorf("ChildReconciler %q must define ChildType with apiVersion and kind since it is unstructured", r.Name)
	}
	if isNil(r.ChildListType) {
		return fmt.Errorf("ChildReconciler %q must define ChildListType since none can be made of %s", r.Name, reflect.TypeFor[CLT]())
	}
	if _, ok := any(r.ChildListType).(*unstructured.UnstructuredList); ok {
		return nil
	}
	items, err := meta.GetItemsPtr(r.ChildListType)
	if err != nil {
		return fmt.Errorf("ChildReconciler %q must have a ChildListType with items: %w", r.Name, err)
	}
	item := reflect.TypeOf(items).Elem().Elem()
	if item.Kind() == reflect.Struct {
		item = reflect.PointerTo(item)
	}
	if child := reflect.TypeFor[CT](); !item.AssignableTo(child) {
		return fmt.Errorf("ChildReconciler %q must have a ChildListType of its ChildType: the items of %T are %s, not %s", r.Name, r.ChildListType, item, child)
	}
	return nil
}

// Reconcile makes the child as it should be, see [ChildReconciler]. The result is always empty.
func (r *ChildReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.invalid != nil {
		return Result{}, r.invalid
	}
	ctx = enter(ctx, r.Name)
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("ChildReconciler %q: %w", r.Name, err)
	}

	actual, extras, err := r.ourChildren(ctx, config, resource)
	if err != nil {
		noteFailure(ctx, typeName(r.ChildType), err)
		return Result{}, err
	}
	child, named, err := r.converge(ctx, config, resource, actual, extras)
	if resource.GetDeletionTimestamp() == nil {
		err = r.reflect(ctx, config, resource, child, named, err)
	}
	if err != nil {
		noteFailure(ctx, r.describeChild(named), err)
	}
	return Result{}, err
}

// converge makes the cluster agree. It returns the child as it is now, and as it was desired, for errors to name.
func (r *ChildReconciler[T, CT, CLT]) converge(ctx context.Context, config Config, resource T, actual CT, extras []CT) (child, desired CT, _ error) {
	var none CT
	desired, err := r.desired(ctx, config, resource)
	if errors.Is(err, OnlyReconcileChildStatus) {
		return actual, desired, nil
	}
	if err != nil {
		return none, desired, err
	}

	if len(extras) > 0 {
		for _, extra := range append([]CT{actual}, extras...) {
			logr.FromContextOrDiscard(ctx).Info("extra child detected", "child", describeObject(extra))
			if _, err := r.manage(ctx, config, resource, extra, none); err != nil {
				return none, desired, err
			}
		}
		if isNil(desired) {
			// That they were asked to go does not mean that they are gone: a finalizer has to wait for the next request.
			return none, desired, nil
		}
		actual = none
	}
	if isNil(actual) {
		actual = copyOf(r.ChildType)
		if err := r.checkScope(config, desired); err != nil {
			return none, desired, err
		}
	}
	child, err = r.manage(ctx, config, resource, actual, desired)
	return child, desired, err
}

func (r *ChildReconciler[T, CT, CLT]) manage(ctx context.Context, config Config, resource T, actual, desired CT) (CT, error) {
	child, err := r.manager.Manage(ctx, resource, actual, desired)
	if remembersChildren(ctx) && (err == nil || !isNil(child)) {
		knowChild(ctx, r.family(config), actual, child)
	}
	return child, err
}

// desired asks for the child and makes the resource its controller. It is nil for a terminating resource.
func (r *ChildReconciler[T, CT, CLT]) desired(ctx context.Context, config Config, resource T) (CT, error) {
	var none CT
	if resource.GetDeletionTimestamp() != nil {
		return none, nil
	}
	desired, err := r.DesiredChild(ctx, resource)
	if err != nil {
		return none, err
	}
	if isNil(desired) {
		return none, nil
	}
	if !r.skipOwnerReference() {
		ref, err := controllerRef(ctx, config, resource)
		if err == nil {
			err = setController(resource, ref, desired)
		}
		if err != nil {
			return desired, fmt.Errorf("ChildReconciler %q is unable to make %s the controller of %s: %w",
				r.Name, describeObject(resource), describeObject(desired), err)
		}
	}
	if !r.ours(resource, desired) {
		logr.FromContextOrDiscard(ctx).Info("object returned from DesiredChild does not match OurChild, this can result in orphaned children",
			"child", describeObject(desired))
	}
	return desired, nil
}

// checkScope finds a child without the namespace that its type needs, which the API server would refuse in words that do
// not name the object.
func (r *ChildReconciler[T, CT, CLT]) checkScope(config Config, desired CT) error {
	if isNil(desired) || desired.GetNamespace() != "" {
		return nil
	}
	namespaced, err := config.IsObjectNamespaced(desired)
	if err != nil || !namespaced {
		// A type that the mapper does not know is the API server's to judge.
		return nil
	}
	return fmt.Errorf("ChildReconciler %q is unable to create %s: the type is namespaced, and DesiredChild set no namespace",
		r.Name, describeObject(desired))
}

// ourChildren returns the objects that are this node's child: one, as a rule, and the others if there are more.
func (r *ChildReconciler[T, CT, CLT]) ourChildren(ctx context.Context, config Config, resource T) (only CT, others []CT, _ error) {
	candidates, err := r.candidates(ctx, config, resource)
	if err != nil {
		return only, nil, err
	}
	for _, candidate := range candidates {
		child, ok := candidate.(CT)
		switch {
		case !ok || !r.ours(resource, child):
		case isNil(only):
			only = child
		default:
			others = append(others, child)
		}
	}
	return only, others, nil
}

// candidates returns the objects among which the children are.
func (r *ChildReconciler[T, CT, CLT]) candidates(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	candidates, err := r.remembered(ctx, config, resource)
	if err != nil || !r.mustBeSure(config, resource) || slices.ContainsFunc(candidates, r.isOurs(resource)) {
		return candidates, err
	}
	live, err := readList(ctx, config.APIReader, r.ChildListType, r.ListOptions(ctx, resource)...)
	if apierrs.IsBadRequest(err) {
		// The options are such that only the cache understands them.
		return candidates, nil
	}
	return live, err
}

// remembered returns the objects among which the children are, by what the cache shows and by what is remembered of our own
// writes. In a node called by itself there is no memory, and each call lists.
func (r *ChildReconciler[T, CT, CLT]) remembered(ctx context.Context, config Config, resource T) ([]client.Object, error) {
	if !remembersChildren(ctx) {
		return r.read(ctx, config, resource)
	}
	key := r.family(config)
	if known, ok := knownChildren(ctx, key); ok && key.node == nil {
		return known, nil
	}
	return listChildren(ctx, config, key, r.ChildType, func(opts ...client.ListOption) ([]client.Object, error) {
		return r.read(ctx, config, resource, opts...)
	})
}

// family identifies the children of the node: those that the resource controls, or those that it finds in its own way.
func (r *ChildReconciler[T, CT, CLT]) family(config Config) familyKey {
	if r.ListOptions == nil {
		return familyOf(config, r.ChildListType, nil)
	}
	return familyOf(config, r.ChildListType, r)
}

// read returns what the cache has. With options of the author's it is narrowed down to the node's own children, so that nobody
// else's are remembered.
func (r *ChildReconciler[T, CT, CLT]) read(ctx context.Context, config Config, resource T, opts ...client.ListOption) ([]client.Object, error) {
	if r.ListOptions == nil {
		return readChildren(ctx, config, resource, r.ChildType, r.ChildListType, opts...)
	}
	listed, err := readList(ctx, config.Client, r.ChildListType, r.ListOptions(ctx, resource)...)
	if err != nil {
		return nil, err
	}
	ours := r.isOurs(resource)
	return slices.DeleteFunc(listed, func(obj client.Object) bool { return !ours(obj) }), nil
}

// mustBeSure tells whether a child that the cache does not show would be left behind: the resource is about to go, and the
// child does not go with it.
func (r *ChildReconciler[T, CT, CLT]) mustBeSure(config Config, resource T) bool {
	return r.skipOwnerReference() && resource.GetDeletionTimestamp() != nil && config.APIReader != nil
}

func (r *ChildReconciler[T, CT, CLT]) isOurs(resource T) func(client.Object) bool {
	return func(obj client.Object) bool {
		child, ok := obj.(CT)
		return ok && r.ours(resource, child)
	}
}

func (r *ChildReconciler[T, CT, CLT]) ours(resource T, child CT) bool {
	if !r.skipOwnerReference() && !metav1.IsControlledBy(child, resource) {
		return false
	}
	return r.OurChild == nil || r.OurChild(resource, child)
}

func (r *ChildReconciler[T, CT, CLT]) describeChild(child CT) string {
	if isNil(child) {
		return typeName(r.ChildType)
	}
	return describeObject(child)
}

// Describe tells what the node does with the child's type.
func (r *ChildReconciler[T, CT, CLT]) Describe() Description {
	r.init()
	uses := []Access{{Object: r.ChildType, Verbs: []string{"get", "list", "watch"}}}
	uses = append(uses, managerAccess(r.manager, r.ChildType)...)
	return Description{
		Kind:   "ChildReconciler",
		Name:   r.Name,
		Detail: typeName(r.ChildType),
		Uses:   append(uses, finalizerAccess("", !r.skipOwnerReference())...),
	}
}

// managerAccess is what an object manager does with objects of the type of managed. One that does not say may do all that there
// is to do.
func managerAccess(manager any, managed client.Object) []Access {
	if d, ok := manager.(Describer); ok && !isNilNode(manager) {
		return d.Describe().Uses
	}
	return []Access{{Object: managed, Verbs: []string{"create", "update", "patch", "delete"}}}
}

// finalizerAccess is what a node needs of the resource itself: to patch its finalizers, and to have children block its
// deletion, which clusters that enforce owner reference permissions ask for.
func finalizerAccess(finalizer string, owns bool) []Access {
	var access []Access
	if finalizer != "" {
		access = append(access, Access{Verbs: []string{"patch"}})
	}
	if owns {
		access = append(access, Access{Subresource: "finalizers", Verbs: []string{"update"}})
	}
	return access
}
