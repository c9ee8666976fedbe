package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// children are the children of one type of a node: [ChildReconciler] has one, [ChildSetReconciler] many. The methods
// find the children, set their owner, have the object manager make them agree with what is desired, and decide which
// errors are reflected on the resource.
type children[T, CT client.Object, CLT client.ObjectList] struct {
	// kind and name are those of the node, for errors.
	kind, name string
	// node stands for the node itself, as a key.
	node any

	childType CT
	// listType is nil until completeListType found it, if CLT is an interface.
	listType CLT
	listOnce sync.Once
	listErr  error
	manager  ObjectManager[CT]
	// tracked is true if the resource is woken by what the node tracks although it does not own its children.
	tracked bool
	// unowned is true if the children have no owner reference.
	unowned bool
	// reasons are the API reasons of errors that are reflected.
	reasons     []metav1.StatusReason
	listOptions func(ctx context.Context, resource T) []client.ListOption
	ourChild    func(resource T, child CT) bool
	// recreates is true if a child with an immutable field that is desired otherwise is deleted and created again.
	recreates bool
	// recreations are the attempts to do so, outside of a root.
	recreations recreations
	// label is the value of [NodeLabel] that the children have. It is empty if they are not labelled.
	label string
}

// defaultChildTypes returns child and list with empty values for nil, and with the kind of an unstructured list.
func defaultChildTypes[CT client.Object, CLT client.ObjectList](child CT, list CLT) (CT, CLT) {
	child, list = defaultType(child), defaultType(list)
	if u, ok := any(list).(*unstructured.UnstructuredList); ok && u != nil && u.GetKind() == "" && !isNil(child) {
		gvk := child.GetObjectKind().GroupVersionKind()
		u.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	}
	return child, list
}

// defaultReasons returns given or, if it is nil, the reasons of errors whose cause only the user can remove.
func defaultReasons(given []metav1.StatusReason) []metav1.StatusReason {
	if given != nil {
		return given
	}
	return []metav1.StatusReason{
		metav1.StatusReasonAlreadyExists, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
	}
}

// useShortForm makes the object manager if the author gave a function to merge instead.
func (k *children[T, CT, CLT]) useShortForm(finalizer string, merge func(current, desired CT), sanitize func(CT) any) {
	if !isNilNode(k.manager) || merge == nil {
		return
	}
	k.tracked = k.unowned
	if k.label != "" {
		// What is merged may leave the labels as they are.
		author := merge
		merge = func(current, desired CT) {
			author(current, desired)
			k.setLabel(current)
		}
	}
	k.manager = &UpdatingObjectManager[CT]{
		Name:              k.name,
		Type:              k.childType,
		Finalizer:         finalizer,
		TrackDesired:      k.unowned,
		MergeBeforeUpdate: merge,
		Sanitize:          sanitize,
	}
}

// errorf returns an error of the node.
func (k *children[T, CT, CLT]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{k.kind, k.name}, args...)...)
}

// check finds mistakes in how the node is configured. Lacking names a function that the node needs and that the author
// did not set, if any. Both is true if the author set an object manager and also some of fields, the short form.
// Generic types may fit the signature of the node but not each other, which the compiler does not find.
func (k *children[T, CT, CLT]) check(lacking string, both bool, fields string) error {
	switch {
	case k.unowned && k.ourChild == nil:
		return k.errorf("must implement OurChild since owner references are not used")
	case k.unowned && k.listOptions == nil:
		return k.errorf("must implement ListOptions since owner references are not used")
	case lacking != "":
		return k.errorf("must implement %s", lacking)
	case isNilNode(k.manager):
		return k.errorf("must implement MergeBeforeUpdate or ChildObjectManager")
	case len(content.IsLabelValue(k.label)) > 0:
		return k.errorf("must have a Name that can be the value of a label, since LabelChildren is set: %s",
			strings.Join(content.IsLabelValue(k.label), ", "))
	case both:
		return k.errorf("may not implement both ChildObjectManager and %s", fields)
	case isNil(k.childType):
		return k.errorf("must define ChildType since none can be made of %s", reflect.TypeFor[CT]())
	case lacksKind(k.childType):
		return k.errorf("must define ChildType with apiVersion and kind since it is unstructured")
	case isNil(k.listType) && reflect.TypeFor[CLT]().Kind() == reflect.Interface:
		// The scheme knows it.
		return nil
	case isNil(k.listType):
		return k.errorf("must define ChildListType since none can be made of %s", reflect.TypeFor[CLT]())
	}
	if _, ok := any(k.listType).(*unstructured.UnstructuredList); ok {
		return nil
	}
	items, err := meta.GetItemsPtr(k.listType)
	if err != nil {
		return k.errorf("must have a ChildListType with items: %w", err)
	}
	item := reflect.TypeOf(items).Elem().Elem()
	if item.Kind() == reflect.Struct {
		item = reflect.PointerTo(item)
	}
	if child := reflect.TypeFor[CT](); !item.AssignableTo(child) {
		return k.errorf("must have a ChildListType of its ChildType: the items of %T are %s, not %s",
			k.listType, item, child)
	}
	return nil
}

// completeListType finds the list type in the scheme, if the author gave none: it has the kind of the child followed by
// List, as Kubernetes names its lists.
func (k *children[T, CT, CLT]) completeListType(config Config) error {
	k.listOnce.Do(func() {
		if !isNil(k.listType) {
			return
		}
		kind, err := config.GroupVersionKindFor(k.childType)
		if err != nil {
			k.listErr = k.errorf("is unable to find the kind of %s: %w", typeName(k.childType), err)
			return
		}
		kind.Kind += "List"
		list, err := config.Scheme().New(kind)
		if err != nil {
			k.listErr = k.errorf("must define ChildListType: %w", err)
			return
		}
		listType, ok := list.(CLT)
		if !ok {
			k.listErr = k.errorf("must define ChildListType, since %T is no list of objects", list)
			return
		}
		k.listType = listType
	})
	return k.listErr
}

// validate validates the object manager, if the validation is recursive.
func (k *children[T, CT, CLT]) validate(ctx context.Context) error {
	if err := validateNested(ctx, k.manager); err != nil {
		return k.errorf("must have a valid ChildObjectManager: %w", err)
	}
	return nil
}

// setUp watches the type of the children, indexes it by owner, and sets up the object manager. It calls then, the
// function of the author, last, unless that is nil.
func (k *children[T, CT, CLT]) setUp(
	ctx context.Context, mgr Manager, bldr *Builder, then func(context.Context, Manager, *Builder) error,
) error {
	if err := k.checkKind(ctx); err != nil {
		return err
	}
	if !k.unowned {
		if err := k.watch(ctx, mgr, bldr); err != nil {
			return k.errorf("is unable to watch %s: %w", typeName(k.childType), err)
		}
	}
	if err := k.manager.SetupWithManager(ctx, mgr, bldr); err != nil || then == nil {
		return err
	}
	return then(ctx, mgr, bldr)
}

// checkKind returns an error if the kind of the children is not known. They could be neither watched nor indexed.
func (k *children[T, CT, CLT]) checkKind(ctx context.Context) error {
	config, err := RetrieveConfig(ctx)
	if err != nil || config.IsEmpty() {
		return err
	}
	if _, err := config.GroupVersionKindFor(k.childType); err != nil {
		return k.errorf("must have a ChildType that the scheme knows, or with apiVersion and kind: %w", err)
	}
	return nil
}

func (k *children[T, CT, CLT]) watch(ctx context.Context, mgr Manager, bldr *Builder) error {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	if err := watchOwned(ctx, mgr, bldr, k.childType); err != nil {
		return err
	}
	if err := WatchTracked(ctx, bldr, k.childType); err != nil {
		return err
	}
	config.owners.register(config.Client, k.childType)
	return nil
}

// converge makes the cluster agree with what is desired of one child, or with the error that came in its place. found
// are the objects that are this child: one, as a rule. It returns the child as it is now.
func (k *children[T, CT, CLT]) converge(
	ctx context.Context, config Config, resource T, found []CT, desired CT, err error,
) (CT, error) {
	var none CT
	actual, extras := pickChild(found)
	switch {
	case errors.Is(err, OnlyReconcileChildStatus):
		return actual, nil
	case err != nil:
		return none, err
	}
	if err := k.take(ctx, config, resource, found...); err != nil {
		return none, err
	}
	if !isNil(desired) {
		if err := k.setOwner(ctx, config, resource, desired); err != nil {
			return none, err
		}
	}

	if len(extras) > 0 {
		for _, extra := range append([]CT{actual}, extras...) {
			logr.FromContextOrDiscard(ctx).Info("extra child detected", "child", describeObject(extra))
			if _, err := k.manage(ctx, config, resource, extra, none); err != nil {
				return none, err
			}
		}
		if isNil(desired) {
			// The finalizer stays until the next request, because a deleted child may not be gone yet.
			return none, nil
		}
		actual = none
	}
	if isNil(actual) {
		actual = copyOf(k.childType)
		if err := k.checkScope(config, desired); err != nil {
			return none, err
		}
	}
	child, err := k.manage(ctx, config, resource, actual, desired)
	if k.recreates && apierrs.IsInvalid(err) {
		return k.recreate(ctx, config, resource, actual, desired, err)
	}
	return child, err
}

// pickChild returns the object that counts as the child, and all others that are not terminating. A terminating object
// counts only if there is no other.
func pickChild[CT client.Object](found []CT) (actual CT, extras []CT) {
	for _, child := range found {
		switch {
		case isNil(actual), actual.GetDeletionTimestamp() != nil && child.GetDeletionTimestamp() == nil:
			actual = child
		case child.GetDeletionTimestamp() == nil:
			extras = append(extras, child)
		}
	}
	return actual, extras
}

func (k *children[T, CT, CLT]) manage(ctx context.Context, config Config, resource T, actual, desired CT) (CT, error) {
	if isAbsent(actual) && !isNil(desired) && slices.Contains(k.reasons, metav1.StatusReasonAlreadyExists) {
		ctx = withExplanation(ctx, func(err error) error {
			return k.blockerOf(ctx, config, resource, desired, err)
		})
	}
	child, err := k.manager.Manage(ctx, resource, actual, desired)
	if err == nil || !isNil(child) {
		k.recordWrite(ctx, config, actual, child)
	}
	if err == nil && !isNil(child) && isAbsent(actual) {
		err = k.take(ctx, config, resource, child)
	}
	return child, err
}

// setOwner makes the resource the controller of desired, unless owner references are not used. It labels desired if
// the children are labelled.
func (k *children[T, CT, CLT]) setOwner(ctx context.Context, config Config, resource T, desired CT) error {
	if k.label != "" {
		k.setLabel(desired)
	}
	if !k.unowned {
		if err := setController(ctx, config, resource, desired); err != nil {
			return k.errorf("is unable to make %s the controller of %s: %w",
				describeObject(resource), describeObject(desired), err)
		}
	}
	if !k.isOwn(resource, desired) {
		logOnce(ctx, "object returned from DesiredChild does not match OurChild", describeObject(desired),
			"this can result in orphaned children")
	}
	return nil
}

// setLabel labels a child with the name of the node.
func (k *children[T, CT, CLT]) setLabel(child CT) {
	labels := child.GetLabels()
	if labels[NodeLabel] == k.label {
		return
	}
	// The author may use one map for several objects.
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[NodeLabel] = k.label
	child.SetLabels(labels)
}

// take notes that the node counts objects as its children and is about to change them. It returns an error if another
// node does so in this request. A terminating resource may lose a child by any of its nodes.
func (k *children[T, CT, CLT]) take(ctx context.Context, config Config, resource T, found ...CT) error {
	request, at := listKeeper(ctx), pathOf(ctx)
	if request == nil || resource.GetDeletionTimestamp() != nil {
		return nil
	}
	key := childKey{list: k.listKey(config)}
	key.list.node = nil
	for _, child := range found {
		if key.uid = child.GetUID(); key.uid == "" {
			continue
		}
		if other := request.take(key, childTaker{node: k.node, at: at}); other != nil {
			return fmt.Errorf("the nodes %s and %s both count %s as their child: set LabelChildren or OurChild on both",
				other, at, describeObject(child))
		}
	}
	return nil
}

// checkScope returns an error for a child without the namespace that its type needs. The API server would refuse it
// with an error that does not name the object.
func (k *children[T, CT, CLT]) checkScope(config Config, desired CT) error {
	if isNil(desired) || desired.GetNamespace() != "" {
		return nil
	}
	namespaced, err := config.IsObjectNamespaced(desired)
	if err != nil || !namespaced {
		// The mapper does not know the type, so the API server decides.
		return nil
	}
	return k.errorf("is unable to create %s: the type is namespaced, and no namespace is desired",
		describeObject(desired))
}

// describe names child, or the type where there is none, for errors.
func (k *children[T, CT, CLT]) describe(child CT) string {
	if isNil(child) {
		return typeName(k.childType)
	}
	return describeObject(child)
}

// uses returns what the node does with the type of its children, and with the resource because of them.
func (k *children[T, CT, CLT]) uses() []Access {
	uses := []Access{{Object: k.childType, Verbs: []string{"get", "list", "watch"}}}
	uses = append(uses, managerAccess(k.manager, k.childType)...)
	return append(uses, finalizerAccess("", !k.unowned)...)
}

// managerAccess returns what an object manager does with objects of the type of managed. A manager that is no
// [Describer] may do everything.
func managerAccess(manager any, managed client.Object) []Access {
	if d, ok := manager.(Describer); ok && !isNilNode(manager) {
		return d.Describe().Uses
	}
	return []Access{{Object: managed, Verbs: []string{"create", "update", "patch", "delete"}}}
}

// finalizerAccess returns what a node does with the resource itself: it patches the finalizers, and has children block
// the deletion of the resource, which needs a permission in clusters that enforce owner reference permissions.
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

// classify decides who is to see the error that came of a child. The user sees reflected on the resource, and the
// caller of the node sees returned. The child is nil if there is an error.
func (k *children[T, CT, CLT]) classify(
	ctx context.Context, config Config, resource T, child, desired CT, err error,
) (_ CT, reflected, returned error) {
	if err == nil {
		return child, nil, nil
	}
	defer func() {
		if reflected != nil {
			logOnce(ctx, "the child is not as desired", k.describe(desired), reflected.Error())
		}
	}()
	var none CT
	if flaps := (*flappingError)(nil); errors.As(err, &flaps) {
		// Another request does not help, and the object may well be as desired.
		return none, err, nil
	}
	reason := apierrs.ReasonForError(err)
	if !slices.Contains(k.reasons, reason) {
		return none, nil, err
	}
	if reason == metav1.StatusReasonAlreadyExists {
		found := k.blockerOf(ctx, config, resource, desired, err)
		switch {
		case found.unreadable != nil:
			return none, nil, found.unreadable
		case found.ours:
			// The child is there and ours: the cache lags behind, and the next attempt will see it.
			contextOf(ctx).state.fail(pathOf(ctx), k.describe(desired), ClassConflict, err)
			return none, nil, err
		}
		return none, found.explained(), nil
	}
	if reason == metav1.StatusReasonForbidden {
		// No event says that a quota was raised or a right was granted.
		contextOf(ctx).state.wantRetry()
	}
	return none, err, nil
}
