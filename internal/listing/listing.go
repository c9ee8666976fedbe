// Package listing lists the objects that a resource controls: by an index of the cache where there is one, else from
// the namespace of the resource.
package listing

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// List lists into a new list of the type of list, and returns the objects for which keep, which may be nil, returns
// true. They are sorted, see [Sort].
func List(
	ctx context.Context, reader client.Reader, list client.ObjectList, keep func(client.Object) bool,
	opts ...client.ListOption,
) ([]client.Object, error) {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := reader.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, meta.LenList(list))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok && (keep == nil || keep(obj)) {
			objects = append(objects, obj)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	Sort(objects)
	return objects, nil
}

// Sort sorts objects by namespace and name.
func Sort(objects []client.Object) {
	slices.SortFunc(objects, func(a, b client.Object) int {
		if order := strings.Compare(a.GetNamespace(), b.GetNamespace()); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}
