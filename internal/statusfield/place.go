package statusfield

import (
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithStatus returns a copy of a resource whose field Status is no nil pointer.
func WithStatus[T client.Object](resource T) T {
	resource = resource.DeepCopyObject().(T)
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return resource
	}
	status := fieldOf(value.Elem(), "Status")
	if status.IsValid() && status.Kind() == reflect.Pointer && status.IsNil() && status.CanSet() {
		status.Set(reflect.New(status.Type().Elem()))
	}
	return resource
}

// Place is where in resources of a type a part is. Two nodes with the same place overwrite each other. The zero value
// stands for a place that is not known.
type Place struct {
	resource reflect.Type
	offset   uintptr
}

// PlaceOf finds out where the part is that get returns. The place is not known if sample is nil, if the part is not
// within the memory of the resource, or if get cannot handle a resource without content.
func PlaceOf[T client.Object, Part any](get func(T) *Part, sample T) (place Place) {
	if gotype.IsNil(sample) || reflect.TypeOf(sample).Kind() != reflect.Pointer {
		return Place{}
	}
	defer func() {
		if recover() != nil {
			place = Place{}
		}
	}()
	copied := WithStatus(sample)
	part, resource := get(copied), reflect.ValueOf(copied)
	// What is before the resource has an offset that is larger than its size.
	offset := reflect.ValueOf(part).Pointer() - resource.Pointer()
	if part == nil || offset >= resource.Type().Elem().Size() {
		return Place{}
	}
	return Place{resource.Type(), offset}
}
