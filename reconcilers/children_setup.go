package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"

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
	// indexed is the type of the children in the index by owner, see completeListType.
	indexed listing.Type
	manager ObjectManager[CT]
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
	// optional is true if the cluster may not serve the type of the children.
	optional bool
	// renaming says what becomes of a child of another name. It is empty for a set.
	renaming Renaming
	// ready is the function of the author; it may be nil.
	ready func(ctx context.Context, child CT) bool
	// label is the value of [NodeLabel] that the children have. It is empty if they are not labelled.
	label string
	// finalizer is put on the resource by the node itself; empty for none.
	finalizer string
}

// errorf returns an error of the node.
func (k *children[T, CT, CLT]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %q "+format, append([]any{k.kind, k.name}, args...)...)
}

// NodeLabel is the key of the label that says which node an object is the child of. Its value is the name of the node.
// Only nodes with LabelChildren set it.
const NodeLabel = "espalier.dev/node"

// setLabels labels a child with the name of the node, and with the item that it is for.
func (k *children[T, CT, CLT]) setLabels(child CT, item string) {
	setLabel(child, NodeLabel, k.label)
	setLabel(child, ItemLabel, item)
}

// holdsFinalizer reports whether the resource has a finalizer that stays on it until the children are gone.
func (k *children[T, CT, CLT]) holdsFinalizer(resource T) bool {
	return slices.ContainsFunc(resource.GetFinalizers(), func(finalizer string) bool {
		return finalizer == k.finalizer || slices.Contains(managerFinalizers(k.manager), finalizer)
	})
}

// setLabel gives an object a label, unless its value is empty.
func setLabel(obj client.Object, key, value string) {
	if value == "" || obj.GetLabels()[key] == value {
		return
	}
	// The author may use one map for several objects.
	obj.SetLabels(MergeMaps(obj.GetLabels(), map[string]string{key: value}))
}

// ofItem returns the candidates that are labelled for the item of ctx. The request has them by their label, so that it
// does not go through all of them for each item.
func (k *children[T, CT, CLT]) ofItem(
	ctx context.Context, config Config, candidates []client.Object,
) []client.Object {
	item, request := itemOf(ctx).labelled(), listKeeper(ctx)
	if item == "" || request == nil || k.listOptions != nil || len(candidates) == 0 {
		return candidates
	}
	return request.lists.Labelled(k.listKey(ctx, config), ItemLabel, item)
}

// ownOf returns the objects that are children of the node, for the item of ctx.
func (k *children[T, CT, CLT]) ownOf(ctx context.Context, resource T, objects []client.Object) []CT {
	item := itemOf(ctx).labelled()
	own := make([]CT, 0, len(objects))
	for _, obj := range objects {
		if k.isOwn(resource, obj, item) {
			own = append(own, obj.(CT))
		}
	}
	return own
}

// isOwn reports whether an object is a child of the node, for an item.
func (k *children[T, CT, CLT]) isOwn(resource T, obj client.Object, item string) bool {
	if !k.mayBeOwn(resource, obj) {
		return false
	}
	labels := obj.GetLabels()
	return labels[ItemLabel] == item && (k.label == "" || labels[NodeLabel] == k.label)
}

// mayBeOwn reports whether an object is a child of the node, whatever its label.
func (k *children[T, CT, CLT]) mayBeOwn(resource T, obj client.Object) bool {
	child, ok := obj.(CT)
	if !ok || !k.unowned && !metav1.IsControlledBy(child, resource) {
		return false
	}
	return k.ourChild == nil || k.ourChild(resource, child)
}

// isUnlabelled reports whether an object is a child of the node if it is desired: it was made before the children were
// labelled, or has lost its labels. A label that it has is that of the node and of the item.
func (k *children[T, CT, CLT]) isUnlabelled(resource T, obj client.Object, item string) bool {
	labels := obj.GetLabels()
	node, of := labels[NodeLabel], labels[ItemLabel]
	lacks := k.label != "" && node == "" || item != "" && of == ""
	fits := (k.label == "" || node == "" || node == k.label) && (of == "" || of == item)
	return lacks && fits && k.mayBeOwn(resource, obj)
}

// defaultChildTypes returns child and list with empty values for nil, and with the kind of an unstructured list.
func defaultChildTypes[CT client.Object, CLT client.ObjectList](child CT, list CLT) (CT, CLT) {
	child, list = defaultType(child), defaultType(list)
	u, ok := any(list).(*unstructured.UnstructuredList)
	if ok && u != nil && u.GetKind() == "" && !gotype.IsNil(child) {
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
	if !gotype.IsNil(k.manager) || merge == nil {
		return
	}
	k.tracked = k.unowned
	// What is merged may leave the labels as they are.
	author := merge
	merge = func(current, desired CT) {
		author(current, desired)
		k.setLabels(current, desired.GetLabels()[ItemLabel])
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
	case gotype.IsNil(k.manager):
		return k.errorf("must implement MergeBeforeUpdate or ChildObjectManager")
	case len(content.IsLabelValue(k.label)) > 0:
		return k.errorf("must have a Name that can be the value of a label, since LabelChildren is set: %s",
			strings.Join(content.IsLabelValue(k.label), ", "))
	case both:
		return k.errorf("may not implement both ChildObjectManager and %s", fields)
	case gotype.IsNil(k.childType):
		return k.errorf("must define ChildType since none can be made of %s", reflect.TypeFor[CT]())
	case lacksKind(k.childType):
		return k.errorf("must define ChildType with apiVersion and kind since it is unstructured")
	case gotype.IsNil(k.listType) && reflect.TypeFor[CLT]().Kind() == reflect.Interface:
		// The scheme knows it.
		return nil
	case gotype.IsNil(k.listType):
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
	managed := ctx
	if k.optional {
		managed = derive(ctx, func(s *treeContext) { s.optionalType = k.childType })
	}
	if err := k.manager.SetupWithManager(managed, mgr, bldr); err != nil || then == nil {
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
	if err := watchOwned(ctx, mgr, bldr, k.childType, k.optional); err != nil {
		return err
	}
	if err := watchTracked(ctx, bldr, k.childType, k.optional); err != nil {
		return err
	}
	indexed := indexedType(config.Client, k.childType)
	config.owners.Register(indexed)
	renewIndex(ctx, config, indexed)
	return nil
}

// uses returns what the node does with the type of its children, and with the resource because of them.
func (k *children[T, CT, CLT]) uses() []Access {
	uses := []Access{{
		Object: k.childType, Verbs: []string{"get", "list", "watch"}, Optional: k.optional, Owned: !k.unowned,
	}}
	uses = append(uses, managerAccess(k.manager, k.childType)...)
	patches := func(a Access) bool { return a.Object != nil && slices.Contains(a.Verbs, "patch") }
	if k.unowned && !slices.ContainsFunc(uses, patches) {
		// See letGo.
		uses = append(uses, Access{Object: k.childType, Verbs: []string{"patch"}, Optional: k.optional})
	}
	return append(uses, finalizerAccess("", !k.unowned)...)
}

// managerAccess returns what an object manager does with objects of the type of managed. A manager that is no
// [Describer] may do everything.
func managerAccess(manager any, managed client.Object) []Access {
	if d, ok := manager.(Describer); ok && !gotype.IsNil(manager) {
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

// completeListType finds the list type in the scheme, if the author gave none: it has the kind of the child followed by
// List, as Kubernetes names its lists.
func (k *children[T, CT, CLT]) completeListType(config Config) error {
	k.listOnce.Do(func() {
		k.indexed = indexedType(config.Client, k.childType)
		if !gotype.IsNil(k.listType) {
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

// childSelection says which objects a node counts as its children.
type childSelection struct {
	// node identifies the node. One node may be in several places of a tree.
	node any
	// childType is an object of their type.
	childType client.Object
	// chosen is true if the author said which ones, by OurChild or by ListOptions.
	chosen bool
	// label is the value of [NodeLabel] that they have. It is empty for all values.
	label string
	// exist reports whether there are any of a resource, by what the cache shows.
	exist func(ctx context.Context, resource client.Object) (bool, error)
}

func (k *children[T, CT, CLT]) selection() *childSelection {
	return &childSelection{
		node:      k.node,
		childType: k.childType,
		chosen:    k.ourChild != nil || k.listOptions != nil,
		label:     k.label,
		exist: func(ctx context.Context, resource client.Object) (bool, error) {
			parent, ok := resource.(T)
			if !ok {
				return false, nil // a node above gives its nodes another object
			}
			_, _, found, err := k.find(ctx, parent)
			return len(found) > 0, err
		},
	}
}

// HaveChildren reports whether an object exists that a [ChildReconciler] or [ChildSetReconciler] at or below the
// described node has made for the resource, by what the cache shows. Objects of the items of a [ForEach] with a Key do
// not count, nor do those below a [WithConfig], and those of a node whose resource is another object.
func HaveChildren(ctx context.Context, d Description, resource client.Object) (bool, error) {
	if d.children != nil {
		if exist, err := d.children.exist(ctx, resource); exist || err != nil {
			return exist, err
		}
	}
	if d.items || d.ReplacesConfig {
		return false, nil
	}
	for _, nested := range d.Nodes {
		if exist, err := HaveChildren(ctx, nested, resource); exist || err != nil {
			return exist, err
		}
	}
	return false, nil
}
