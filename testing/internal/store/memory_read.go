package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Get implements [client.Client].
func (c *memoryClient) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption,
) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	call := c.call(Get, gvk, key)
	call.Live = c.options.View == nil
	var found *record
	err = c.run(ctx, call, func() (err error) {
		found, err = c.find(gvk, key)
		return err
	})
	if err != nil {
		return err
	}
	kept := obj.GetObjectKind().GroupVersionKind()
	if err := found.copyTo(obj, gvk.GroupVersion()); err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kindOfRead(obj, gvk, kept))
	return nil
}

// kindOfRead is the kind that the answer to a read has.
func (c *memoryClient) kindOfRead(obj runtime.Object, gvk, kept schema.GroupVersionKind) schema.GroupVersionKind {
	switch obj.(type) {
	case runtime.Unstructured:
		return gvk
	case *metav1.PartialObjectMetadata:
		return kept
	}
	if c.options.View != nil {
		return gvk
	}
	return schema.GroupVersionKind{}
}

// find returns the record that a read sees.
func (c *memoryClient) find(gvk schema.GroupVersionKind, key client.ObjectKey) (*record, error) {
	seen, err := c.snapshot(gvk)
	if err != nil {
		return nil, err
	}
	if err := seen.resource.checkName(key.Namespace, key.Name); err != nil {
		if c.options.View == nil {
			return nil, err
		}
		return nil, seen.notFound(key.Name)
	}
	found := seen.table.find(seen.resource.namespace(key.Namespace), key.Name)
	if found == nil || seen.hides(found) {
		return nil, seen.notFound(key.Name)
	}
	return found, nil
}

// snapshot is what a client sees of a kind.
type snapshot struct {
	resource *resource
	table    table
	revision int64
	view     *View
}

func (s snapshot) hides(r *record) bool {
	return slices.Contains(s.view.hides(r.gvk.GroupKind()), r.key())
}

// notFound is the error for an object that is not seen. A cache knows the kind, not the resource.
func (s snapshot) notFound(name string) error {
	resource := s.resource.resource
	if s.view != nil {
		resource.Resource = s.resource.gvk.Kind
	}
	return apierrors.NewNotFound(resource, name)
}

// snapshot returns what the client sees of a kind.
func (c *memoryClient) snapshot(gvk schema.GroupVersionKind) (snapshot, error) {
	s := c.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.resource(gvk)
	if err != nil {
		return snapshot{}, err
	}
	kind := gvk.GroupKind()
	seen := snapshot{resource: r, table: s.state.tables[kind], revision: s.state.revision, view: c.options.View}
	if revision := c.options.View.show(kind, s.state.revision); revision < s.state.revision {
		seen.table, seen.revision = s.state.at(kind, revision), revision
	}
	return seen, nil
}

// List implements [client.Client].
func (c *memoryClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := c.itemKind(list)
	if err != nil {
		return err
	}
	call := c.call(List, gvk, client.ObjectKey{Namespace: options.Namespace})
	call.Live = c.options.View == nil
	newItem, err := itemOf(list)
	if err != nil {
		return err
	}
	var found page
	err = c.run(ctx, call, func() (err error) {
		found, err = c.page(gvk, options, newItem)
		return err
	})
	if err != nil {
		return err
	}
	kept := list.GetObjectKind().GroupVersionKind()
	if err := c.fill(list, gvk, found, newItem); err != nil {
		return err
	}
	switch list.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadataList:
	default:
		if c.options.View == nil {
			kept = schema.GroupVersionKind{}
		}
	}
	list.GetObjectKind().SetGroupVersionKind(kept)
	return nil
}

// itemKind returns the kind of the items of a list.
func (c *memoryClient) itemKind(list client.ObjectList) (schema.GroupVersionKind, error) {
	gvk, err := c.GroupVersionKindFor(list)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}

// fill fills a list with copies.
func (c *memoryClient) fill(
	list client.ObjectList, gvk schema.GroupVersionKind, found page, newItem func() client.Object,
) error {
	items := make([]runtime.Object, 0, len(found.records))
	for _, r := range found.records {
		item := newItem()
		if err := r.copyTo(item, gvk.GroupVersion()); err != nil {
			return err
		}
		item.GetObjectKind().SetGroupVersionKind(c.kindOfRead(item, gvk, gvk))
		items = append(items, item)
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("cannot fill %T: %w", list, err)
	}
	if len(items) == 0 {
		emptyItems(list)
	}
	list.SetResourceVersion(found.version)
	list.SetContinue(found.next)
	list.SetRemainingItemCount(found.remaining)
	return nil
}

// itemOf returns what makes an item of a list.
func itemOf(list client.ObjectList) (func() client.Object, error) {
	if _, ok := list.(*unstructured.UnstructuredList); ok {
		return func() client.Object { return &unstructured.Unstructured{} }, nil
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	item := reflect.TypeOf(pointer).Elem().Elem()
	if item.Kind() == reflect.Pointer {
		item = item.Elem()
	}
	if !reflect.PointerTo(item).Implements(reflect.TypeFor[client.Object]()) {
		return nil, fmt.Errorf("the items of %T are no objects", list)
	}
	return func() client.Object { return reflect.New(item).Interface().(client.Object) }, nil
}
