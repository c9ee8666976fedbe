package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildSetReconciler keeps a set of children of one type as it should be: it creates, updates and deletes each of them
// as [ChildReconciler] does with one. Each child has an identity, which IdentifyChild reads from it.
//
//   - Runs: looks the children up through the cache, asks DesiredChildren once, has the object manager make each child
//     agree, in the order of the identities, and reflects all of them on the resource at once.
//   - Stops: at the first child whose error is returned, unless ContinueOnError is set. The children before it are
//     reflected.
//   - On error: an error whose API reason is among ReflectedChildErrorReasons is reflected with its child, and the
//     others go on. After a Forbidden the root has the request repeated with back-off, unless its field
//     SkipForbiddenRetry is set. Every other error is returned. An error of DesiredChildren, and identities that are
//     empty or not unique, are returned before anything is changed, and nothing is reflected.
//   - On deletion: deletes all children, without asking DesiredChildren, and reflects an empty result. Owned children
//     would go with the resource anyway; those without an owner reference need a Finalizer.
//   - On [Withdraw]: deletes all children, without asking DesiredChildren, and reflects what is left of them. A
//     [Supervisor] is told of each child, and of its error, in each request, as by [ChildReconciler].
//
// The identity must be part of the child: its name, or a label. A known child whose identity is empty, or is not
// desired, is deleted. If several known children have one identity, all of them are deleted and the desired one is
// created anew.
//
// With a Finalizer, the resource stays until the last child is gone. While the resource waits, its children are
// tracked.
//
// While nothing changes, the node makes no request, and its cost is proportional to the number of children.
type ChildSetReconciler[Type, ChildType client.Object, ChildListType client.ObjectList] struct {
	// Name identifies the node in paths and logs; each child's identity is a segment below it. Default: the child's
	// kind followed by ChildSetReconciler.
	Name string

	// ChildType is an object of the children's type. It is required for unstructured and duck types, which have to
	// carry their kind. Default: an empty ChildType.
	ChildType ChildType
	// ChildListType is a list of the children's type, required where ChildType is. Default: an empty ChildListType or,
	// if that type parameter is [client.ObjectList], the list type of the scheme.
	ChildListType ChildListType

	// Finalizer is put on the resource before any child is created, and taken off when the last child is gone. It is
	// for children that the resource does not own, and implies SkipOwnerReference. Optional.
	Finalizer string

	// SkipOwnerReference creates the children without an owner reference. It is for children in another namespace or
	// cluster, and for children that outlive the resource. ListOptions and OurChild then have to find the children.
	// Default: false.
	SkipOwnerReference bool

	// Setup adds watches and indexes beyond the watch of the children's type. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// DesiredChildren returns the children as they should be, in any order. It must not depend on the time, on random
	// values or on the order of a map, see [ChildReconciler]. [RetrieveKnownChildren] returns the children that exist.
	// With the error [OnlyReconcileChildStatus], the children are not written but reflected. The node may change the
	// returned objects. DesiredChildren is not called for a terminating resource, nor on [Withdraw]. Required.
	DesiredChildren func(ctx context.Context, resource Type) ([]ChildType, error)

	// ChildObjectManager creates, updates and deletes the children. Required, unless the short form is used.
	ChildObjectManager ObjectManager[ChildType]
	// MergeBeforeUpdate and Sanitize are the short form of an [UpdatingObjectManager] as ChildObjectManager, which must
	// then be nil.
	MergeBeforeUpdate func(current, desired ChildType)
	// Sanitize returns what may be logged of a child. See MergeBeforeUpdate.
	Sanitize func(child ChildType) interface{}

	// ReflectChildrenStatusOnParent writes the state of the children into the resource. It must not change the
	// children. One of the three ReflectChildrenStatusOnParent functions is required.
	ReflectChildrenStatusOnParent func(ctx context.Context, parent Type, result ChildSetResult[ChildType])
	// ReflectChildrenStatusOnParentWithError is ReflectChildrenStatusOnParent with an error, which is returned. It
	// takes precedence over ReflectChildrenStatusOnParent.
	ReflectChildrenStatusOnParentWithError func(
		ctx context.Context, parent Type, result ChildSetResult[ChildType],
	) error
	// ReflectChildrenStatusOnParentWithResult is ReflectChildrenStatusOnParentWithError with a result, to ask for a
	// delay. It takes precedence over the other two.
	ReflectChildrenStatusOnParentWithResult func(
		ctx context.Context, parent Type, result ChildSetResult[ChildType],
	) (Result, error)

	// ReflectedChildErrorReasons are the API reasons of errors that are reflected rather than returned. Default (nil):
	// AlreadyExists, Forbidden, Invalid. Empty: none.
	ReflectedChildErrorReasons []metav1.StatusReason

	// RecreateImmutable deletes a child and creates it again if the API server refuses as invalid a change that is
	// possible in no other way, as a rule the change of an immutable field. That is done only if the refusal names a
	// field that is desired with another value, and if a dry run shows that the API server would accept what is desired
	// as a new object; a field that is only left out is no proof. The delete applies to the very version that was read.
	// An event Recreating says why, and what the child holds (Pods, say) goes with it. It is done once for what is
	// desired: if the new child is refused too, the error is reflected. Default: false.
	RecreateImmutable bool

	// ContinueOnError has each child tried, also after one whose error is returned, as [Always] does with nodes: first
	// those that are desired, then those that are to go, both in the order of the identities. The errors are joined in
	// that order. They are in the result that is reflected, too, except for a conflict and a quiet error, which pass by
	// themselves. Default (false): the children after the first such error are left as they are, and the order is that
	// of the identities alone, as in reconciler.io/runtime.
	ContinueOnError bool

	// Conditions are the types of the conditions that the function sets which reflects the children. A SummaryCondition
	// of the root counts them. Optional.
	Conditions []string

	// ListOptions narrow where the children are looked for. Default: the resource's namespace. Required without owner
	// references.
	ListOptions func(ctx context.Context, resource Type) []client.ListOption

	// OurChild reports whether an object is one of this node's children. It must not change the object. Default: each
	// object that the resource controls, or with LabelChildren each of them with the label. Required without owner
	// references.
	OurChild func(resource Type, child ChildType) bool

	// IdentifyChild returns the identity of a child, desired or known. It must not change the child. Required.
	IdentifyChild func(child ChildType) string

	// LabelChildren labels the children with [NodeLabel] and the name of the node. Only objects with that label count
	// as children of this node, see [ChildReconciler]. An object without the label counts too, if it has the name of a
	// desired child and would be a child otherwise; [RetrieveKnownChildren] does not return it. Default: false.
	LabelChildren bool

	// OptionalKind lets the node work in clusters that do not serve the children's type. It is then watched when it is
	// needed first, see [WatchOptional], unless it is a type of Kubernetes itself. While it is not served, nothing
	// happens if no child is desired. Otherwise a [KindNotServedError] is reflected, whatever
	// ReflectedChildErrorReasons are, and the resource is woken when the type is served. Default (false): the manager
	// stops if the type is not served.
	OptionalKind bool

	initOnce sync.Once
	children *children[Type, ChildType, ChildListType]
	invalid  error
}

var _ SubReconciler[client.Object] = (*ChildSetReconciler[client.Object, client.Object, client.ObjectList])(nil)

func (r *ChildSetReconciler[T, CT, CLT]) init() {
	r.initOnce.Do(func() {
		r.ChildType, r.ChildListType = defaultChildTypes(r.ChildType, r.ChildListType)
		r.ReflectedChildErrorReasons = defaultReasons(r.ReflectedChildErrorReasons)
		if r.Name == "" {
			r.Name = fmt.Sprintf("%sChildSetReconciler", typeName(r.ChildType))
		}
		r.children = &children[T, CT, CLT]{
			kind: "ChildSetReconciler", name: r.Name, node: r,
			childType: r.ChildType, listType: r.ChildListType,
			manager:     r.ChildObjectManager,
			unowned:     r.SkipOwnerReference || r.Finalizer != "",
			tracked:     tracksDesired(r.ChildObjectManager),
			reasons:     r.ReflectedChildErrorReasons,
			listOptions: r.ListOptions,
			ourChild:    r.OurChild,
			recreates:   r.RecreateImmutable,
			optional:    r.OptionalKind,
			finalizer:   r.Finalizer,
		}
		if r.LabelChildren {
			r.children.label = r.Name
		}
		r.children.useShortForm("", r.MergeBeforeUpdate, r.Sanitize)
		r.invalid = r.check()
	})
}

// SetupWithManager validates, watches the children's type, indexes it by owner, and sets up the object manager.
func (r *ChildSetReconciler[T, CT, CLT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if r.Finalizer != "" {
		if err := watchTracked(ctx, bldr, r.ChildType, r.OptionalKind); err != nil {
			return r.children.errorf("is unable to watch %s: %w", typeName(r.ChildType), err)
		}
	}
	return r.children.setUp(ctx, mgr, bldr, r.Setup)
}

// Validate checks that the fields are set as they must be and, if recursive, the object manager.
func (r *ChildSetReconciler[T, CT, CLT]) Validate(ctx context.Context) error {
	r.init()
	if r.invalid != nil {
		return r.invalid
	}
	return r.children.validate(ctx)
}

func (r *ChildSetReconciler[T, CT, CLT]) check() error {
	reflects := r.ReflectChildrenStatusOnParent != nil ||
		r.ReflectChildrenStatusOnParentWithError != nil || r.ReflectChildrenStatusOnParentWithResult != nil
	shortForm := r.MergeBeforeUpdate != nil || r.Sanitize != nil
	switch {
	case r.DesiredChildren == nil:
		return r.children.errorf("must implement DesiredChildren")
	case !reflects:
		return r.children.errorf("must implement ReflectChildrenStatusOnParent or " +
			"ReflectChildrenStatusOnParentWithError")
	}
	lacking := ""
	if r.IdentifyChild == nil {
		lacking = "IdentifyChild"
	}
	return r.children.check(lacking, shortForm && !gotype.IsNil(r.ChildObjectManager), "MergeBeforeUpdate or Sanitize")
}

// Reconcile makes the children as they should be, see [ChildSetReconciler]. It returns the result of
// ReflectChildrenStatusOnParentWithResult. Without that function the result is empty.
func (r *ChildSetReconciler[T, CT, CLT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if r.invalid != nil {
		return Result{}, r.invalid
	}
	ctx = Enter(ctx, r.Name)
	s := supervisionIn(ctx, resource)
	ctx, config, known, err := r.children.find(ctx, resource)
	if err != nil {
		r.children.observe(ctx, config, s, outcome[CT]{err: err})
		return Result{}, err
	}
	ctx = stashKnownChildren(ctx, known)

	var desired []CT
	if !CleansUp(ctx, resource) {
		desired, err = r.DesiredChildren(ctx, resource)
	}
	statusOnly := errors.Is(err, OnlyReconcileChildStatus)
	if statusOnly {
		desired, err = nil, nil
	}
	if err == nil {
		known, err = r.children.withUnlabelled(ctx, config, resource, known, desired...)
	}
	var slots []childSlot[CT]
	if err == nil {
		slots, err = slotsOf(r.IdentifyChild, desired, known)
	}
	if err != nil {
		recordFailure(ctx, typeName(r.ChildType), err)
	} else {
		err = r.trackLast(ctx, config, resource, known)
	}
	if err != nil {
		r.children.observe(ctx, config, s, outcome[CT]{found: known, err: err})
		return Result{}, err
	}
	slots = suspendSlots(s, slots)
	if r.ContinueOnError {
		slices.SortStableFunc(slots, byNeed)
	}
	result, err := r.converge(ctx, config, resource, s, slots, statusOnly)
	slices.SortFunc(result.Children, func(a, b ChildSetPartialResult[CT]) int { return strings.Compare(a.Id, b.Id) })
	requeue, reflectErr := r.reflect(ctx, resource, result)
	recordFailure(ctx, typeName(r.ChildType), reflectErr)
	if err != nil {
		return requeue, joinLoud(err, reflectErr)
	}
	if reflectErr != nil || !CleansUp(ctx, resource) {
		return requeue, reflectErr
	}
	wait, err := r.release(ctx, config, resource, known)
	return aggregateResult(requeue, wait), err
}

// converge makes the cluster agree on one child after the other.
func (r *ChildSetReconciler[T, CT, CLT]) converge(
	ctx context.Context, config Config, resource T, s supervision, slots []childSlot[CT], statusOnly bool,
) (result ChildSetResult[CT], err error) {
	terminating := resource.GetDeletionTimestamp() != nil
	if !CleansUp(ctx, resource) {
		err = AddFinalizer(ctx, resource, r.Finalizer)
	}
	if err == nil && !terminating {
		result.Children = make([]ChildSetPartialResult[CT], 0, len(slots))
	}
	if err == nil && len(slots) == 0 && !statusOnly {
		// A manager may hold a finalizer of its own until there is nothing left.
		var none CT
		_, err = r.children.manager.Manage(ctx, resource, copyOf(r.ChildType), none)
	}
	if err != nil {
		r.children.observe(ctx, config, s, outcome[CT]{err: err})
		return result, err
	}

	var desiredErr error
	if statusOnly {
		desiredErr = OnlyReconcileChildStatus
	}
	parent := pathOf(ctx)
	// One allocation for the contexts of all children.
	paths := make([]nodePath, len(slots))
	var errs []error
	for i, slot := range slots {
		paths[i] = nodePath{Context: ctx, name: slot.id, parent: parent}
		ctx := &paths[i]
		child, err := r.children.converge(
			ctx, config, resource, slot.known, slot.desired, cmp.Or(slot.err, desiredErr))
		if !terminating {
			var reflected error
			child, reflected, err = r.children.classify(ctx, config, resource, child, slot.desired, err)
			r.children.noteHanging(ctx, s, child)
			r.children.observe(ctx, config, s, outcome[CT]{
				found: slot.known, desired: slot.desired, child: child, kept: statusOnly, err: cmp.Or(reflected, err),
			})
			if err == nil || r.ContinueOnError && !apierrs.IsConflict(err) && !isQuiet(err) {
				part := ChildSetPartialResult[CT]{Id: slot.id, Child: child, Err: cmp.Or(reflected, err)}
				result.Children = append(result.Children, part)
			}
		}
		if err != nil {
			recordFailure(ctx, r.children.describe(slot.desired), err)
			errs = append(errs, err)
		}
		if err != nil && !r.ContinueOnError {
			break
		}
	}
	return result, joinAll(errs...)
}

// trackLast has a resource woken when its last children go. It is called before they are deleted, because the
// event of a child that goes at once may come before the request ends.
func (r *ChildSetReconciler[T, CT, CLT]) trackLast(ctx context.Context, config Config, resource T, known []CT) error {
	waits := r.Finalizer != "" && CleansUp(ctx, resource)
	if !waits || config.Tracker == nil || r.MergeBeforeUpdate != nil {
		// The manager of the short form tracks what it deletes.
		return nil
	}
	for _, child := range known {
		if err := config.track(ctx, child, resource); err != nil {
			recordFailure(ctx, describeObject(child), err)
			return err
		}
	}
	return nil
}

// release takes the finalizer off the resource once no child is left. Known are the children that were there
// at the start of the request.
func (r *ChildSetReconciler[T, CT, CLT]) release(
	ctx context.Context, config Config, resource T, known []CT,
) (Result, error) {
	switch {
	case r.Finalizer == "":
		return Result{}, nil
	case len(known) == 0:
		return Result{}, ClearFinalizer(ctx, resource, r.Finalizer)
	case config.Tracker == nil:
		// No event will wake the resource when they are gone.
		return withRequeue(Result{}, true), nil
	}
	for _, child := range known {
		if child.GetDeletionTimestamp() == nil {
			continue
		}
		err := config.Get(ctx, client.ObjectKeyFromObject(child), copyOf(r.ChildType))
		if apierrs.IsNotFound(err) {
			// Its last event may have come before it was tracked.
			return withRequeue(Result{}, true), nil
		}
	}
	return Result{}, nil
}

func (r *ChildSetReconciler[T, CT, CLT]) reflect(
	ctx context.Context, resource T, result ChildSetResult[CT],
) (Result, error) {
	switch {
	case r.ReflectChildrenStatusOnParentWithResult != nil:
		return r.ReflectChildrenStatusOnParentWithResult(ctx, resource, result)
	case r.ReflectChildrenStatusOnParentWithError != nil:
		return Result{}, r.ReflectChildrenStatusOnParentWithError(ctx, resource, result)
	default:
		r.ReflectChildrenStatusOnParent(ctx, resource, result)
		return Result{}, nil
	}
}

// Describe returns what the node does with the children's type.
func (r *ChildSetReconciler[T, CT, CLT]) Describe() Description {
	r.init()
	return Description{
		Kind:   "ChildSetReconciler",
		Name:   r.Name,
		Detail: typeName(r.ChildType),
		Uses:   append(r.children.uses(), finalizerAccess(r.Finalizer, false)...),

		Conditions: r.Conditions,
		Finalizers: append(managerFinalizers(r.children.manager), nonEmpty(r.Finalizer)...),
		children:   r.children.selection(),
	}
}

// suspendSlots is suspend for the children of a set. An identity without a child is dropped.
func suspendSlots[CT client.Object](s supervision, slots []childSlot[CT]) []childSlot[CT] {
	if s.says != Suspend {
		return slots
	}
	for i := range slots {
		slots[i].desired, slots[i].err = suspend(s, slots[i].desired)
	}
	return slices.DeleteFunc(slots, func(slot childSlot[CT]) bool {
		return gotype.IsNil(slot.desired) && len(slot.known) == 0
	})
}

// childSlot is the desired child and the known children of one identity.
type childSlot[CT client.Object] struct {
	id      string
	desired CT
	known   []CT
	// err is why the child cannot be suspended.
	err error
}

// byNeed orders those that are to go after the others.
func byNeed[CT client.Object](a, b childSlot[CT]) int {
	rank := func(slot childSlot[CT]) int {
		if gotype.IsNil(slot.desired) {
			return 1
		}
		return 0
	}
	return rank(a) - rank(b)
}

var errNoIdentity = errors.New("desired child id may not be empty")

// slotsOf brings desired and known children of one identity together, sorted by identity.
func slotsOf[CT client.Object](identify func(CT) string, desired, known []CT) ([]childSlot[CT], error) {
	slots := make([]childSlot[CT], 0, max(len(desired), len(known)))
	at := make(map[string]int, cap(slots))
	slot := func(id string) (_ *childSlot[CT], fresh bool) {
		i, ok := at[id]
		if !ok {
			i = len(slots)
			at[id] = i
			slots = append(slots, childSlot[CT]{id: id})
		}
		return &slots[i], !ok
	}
	for i, child := range desired {
		if gotype.IsNil(child) {
			return nil, fmt.Errorf("desired child %d is nil", i)
		}
		id := identify(child)
		if id == "" {
			return nil, errNoIdentity
		}
		s, fresh := slot(id)
		if !fresh {
			return nil, fmt.Errorf("duplicate child id found: %s", id)
		}
		s.desired = child
	}
	for i, child := range known {
		s, _ := slot(identify(child))
		if s.known == nil {
			// Most identities have one child, which needs no list of its own.
			s.known = known[i : i+1 : i+1]
			continue
		}
		s.known = append(s.known, child)
	}
	slices.SortFunc(slots, func(a, b childSlot[CT]) int { return strings.Compare(a.id, b.id) })
	return slots, nil
}
