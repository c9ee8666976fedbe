package reconcilers

import (
	"context"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

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
	config.owners.Register(indexedType(config.Client, k.childType))
	return nil
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
