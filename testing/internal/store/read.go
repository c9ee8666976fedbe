package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Get implements [client.Client].
func (c *Client) Get(
	ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	r := c.request(Get, gvk, key)
	r.Live = c.options.View == nil
	var found client.Object
	err = c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		found = empty(obj)
		if r.Live {
			return c.get(ctx, r, remote, found, opts...)
		}
		return c.getCached(ctx, r, remote, found)
	})
	if err != nil {
		return err
	}
	c.store.hideFields(found)
	fillWith(obj, found)
	return nil
}

// getCached reads an object as from a cache. A cache knows the kind, not the resource.
func (c *Client) getCached(ctx context.Context, r request, remote client.WithWatch, found client.Object) error {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: r.Kind.Group, Resource: r.Kind.Kind}, r.Name)
	ctx = c.behind(ctx, r)
	if r.kind != nil && (r.Name == "" || r.Namespace == "" && r.kind.IsNamespaced()) {
		return notFound
	}
	err := c.get(ctx, r, remote, found)
	if apierrors.IsNotFound(err) {
		return notFound
	}
	if err == nil {
		c.setKind(found, r.Kind)
	}
	return err
}

// setKind gives an object from a cache its kind.
func (c *Client) setKind(obj client.Object, gvk schema.GroupVersionKind) {
	if c.options.View != nil {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
}

// behind has a read see what the view of the client shows.
func (c *Client) behind(ctx context.Context, r request) context.Context {
	if r.kind == nil {
		return ctx
	}
	revision := c.store.Revision()
	shown, hidden := c.options.View.show(r.Kind.GroupKind(), revision), c.options.View.hides(r.Kind.GroupKind())
	if shown == revision && len(hidden) == 0 {
		return ctx
	}
	lag := storage.Lag{Revisions: map[string]int64{r.kind.Prefix: shown}, Hidden: map[string]bool{}}
	for _, key := range hidden {
		lag.Hidden[r.kind.Key(key.Namespace, key.Name)] = true
	}
	return storage.Behind(ctx, lag)
}

// List implements [client.Client].
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := c.itemKind(list)
	if err != nil {
		return err
	}
	r := c.request(List, gvk, client.ObjectKey{Namespace: options.Namespace})
	r.Live = c.options.View == nil
	var found client.ObjectList
	err = c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		found = empty(list)
		switch {
		case !r.Live:
			return c.listCached(ctx, r, remote, found, options)
		case c.indexes.indexed(gvk.GroupKind(), options.FieldSelector):
			return c.listIndexed(ctx, r, remote, found, options)
		case isPlain(options):
			return c.list(ctx, r, remote, found, options.LabelSelector, options.Limit)
		}
		return remote.List(ctx, found, options)
	})
	if err != nil {
		return err
	}
	_ = meta.EachListItem(found, func(obj runtime.Object) error {
		if item, ok := obj.(client.Object); ok {
			c.store.hideFields(item)
		}
		return nil
	})
	fillWith(list, found)
	return nil
}

// itemKind returns the kind of the items of a list.
func (c *Client) itemKind(list client.ObjectList) (schema.GroupVersionKind, error) {
	gvk, err := c.GroupVersionKindFor(list)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}

var errContinueFromCache = errors.New("continue list option is not supported by the cache")

// listCached lists as from a cache, which has no pages and no versions of lists.
func (c *Client) listCached(
	ctx context.Context, r request, remote client.WithWatch, list client.ObjectList, options *client.ListOptions,
) error {
	if options.Continue != "" {
		return errContinueFromCache
	}
	kind := list.GetObjectKind().GroupVersionKind()
	if err := c.listIndexed(c.behind(ctx, r), r, remote, list, options); err != nil {
		return err
	}
	list.GetObjectKind().SetGroupVersionKind(kind)
	list.SetResourceVersion("")
	list.SetContinue("continue-not-supported")
	list.SetRemainingItemCount(nil)
	return nil
}

// listIndexed lists what is selected by indexes alone.
func (c *Client) listIndexed(
	ctx context.Context, r request, remote client.WithWatch, list client.ObjectList, options *client.ListOptions,
) error {
	if r.kind == nil {
		return remote.List(ctx, list) // It says what is wrong.
	}
	selects, err := c.indexSelector(r.Kind, options.FieldSelector)
	if err != nil {
		return err
	}
	if err := c.list(ctx, r, remote, list, options.LabelSelector, 0); err != nil {
		return err
	}
	return keepItems(list, options.Limit, func(item client.Object) bool {
		c.store.hideFields(item)
		c.setKind(item, r.Kind)
		return selects(item)
	})
}

// keepItems leaves the items of a list for which keep returns true, no more than a limit; 0 has none.
func keepItems(list client.ObjectList, limit int64, keep func(client.Object) bool) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, func(obj runtime.Object) bool {
		item, ok := obj.(client.Object)
		return !ok || !keep(item)
	})
	if limit > 0 {
		items = items[:min(len(items), int(limit))]
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("cannot fill %T: %w", list, err)
	}
	if len(items) == 0 {
		emptyItems(list)
	}
	return nil
}

// emptyItems gives a list items that are empty and not nil, as decoding does.
func emptyItems(list client.ObjectList) {
	if u, ok := list.(*unstructured.UnstructuredList); ok {
		u.Items = []unstructured.Unstructured{}
		return
	}
	if items := reflect.ValueOf(list).Elem().FieldByName("Items"); items.IsValid() && items.Kind() == reflect.Slice {
		items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	}
}

// indexSelector returns what a cache selects by fields: it knows its indexes alone, and what is equal.
func (c *Client) indexSelector(
	gvk schema.GroupVersionKind, selector fields.Selector,
) (func(client.Object) bool, error) {
	if selector == nil {
		return func(client.Object) bool { return true }, nil
	}
	requirements := selector.Requirements()
	if len(requirements) == 0 {
		return nil, errInexact
	}
	indexes := make([]client.IndexerFunc, len(requirements))
	for i, requirement := range requirements {
		if requirement.Operator == selection.NotEquals {
			return nil, errInexact
		}
		indexes[i] = c.indexes.find(gvk.GroupKind(), requirement.Field)
	}
	for i, requirement := range requirements {
		if indexes[i] == nil {
			//lint:ignore ST1005 it is the text of client-go
			return nil, fmt.Errorf("Index with name field:%s does not exist", requirement.Field)
		}
	}
	return func(item client.Object) bool {
		// An index may change what it gets.
		item = item.DeepCopyObject().(client.Object)
		item.GetObjectKind().SetGroupVersionKind(gvk)
		for i, requirement := range requirements {
			if !slices.Contains(indexes[i](item), requirement.Value) {
				return false
			}
		}
		return true
	}, nil
}
