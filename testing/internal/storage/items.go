package storage

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// items is the slice of a list.
type items struct {
	slice   reflect.Value
	newItem func() runtime.Object
}

// newItems empties the items of a list. NewFunc returns an empty object of the resource.
func newItems(list runtime.Object, newFunc func() runtime.Object) (items, error) {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return items{}, err
	}
	slice, err := conversion.EnforcePtr(pointer)
	if err != nil {
		return items{}, err
	}
	if slice.Kind() != reflect.Slice {
		return items{}, fmt.Errorf("the items of %T are not a slice", list)
	}
	slice.Set(reflect.MakeSlice(slice.Type(), 0, 0))
	element := slice.Type().Elem()
	newItem := func() runtime.Object { return reflect.New(element).Interface().(runtime.Object) }
	// An unstructured object is decoded into the version that it has. It has the kind of one that is read alone, so
	// that both share what was decoded.
	if u, ok := list.(*unstructured.UnstructuredList); ok && u.GetAPIVersion() != "" {
		kind := newFunc().GetObjectKind().GroupVersionKind()
		newItem = func() runtime.Object {
			item := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion()}}
			if kind.GroupVersion().String() == u.GetAPIVersion() {
				item.SetKind(kind.Kind)
			}
			return item
		}
	}
	return items{slice: slice, newItem: newItem}, nil
}

func (i items) append(obj runtime.Object) {
	i.slice.Set(reflect.Append(i.slice, reflect.ValueOf(obj).Elem()))
}
