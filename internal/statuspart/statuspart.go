// Package statuspart finds the struct in the status of a resource in which a node keeps what it knows.
package statuspart

import (
	"reflect"

	"github.com/espalier-dev/espalier/internal/gotype"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In returns the Part that the field Status of a resource is, points to, or embeds. It returns nil if there is none.
func In[Part any](resource client.Object) *Part {
	status, ok := Field(resource, "Status")
	if !ok {
		return nil
	}
	if found, ok := status.Addr().Interface().(*Part); ok {
		return found
	}
	embedded := fieldOf(status, reflect.TypeFor[Part]().Name())
	if !embedded.IsValid() || !embedded.CanInterface() {
		return nil
	}
	found, _ := embedded.Addr().Interface().(*Part)
	return found
}

// Field returns an exported field that is a struct, or a pointer to one that is not nil, of what resource points to.
func Field(resource client.Object, name string) (reflect.Value, bool) {
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field := fieldOf(value.Elem(), name)
	if field.IsValid() && field.Kind() == reflect.Pointer {
		// The element of a nil pointer is no valid value.
		field = field.Elem()
	}
	if !field.IsValid() || field.Kind() != reflect.Struct || !field.CanInterface() {
		return reflect.Value{}, false
	}
	return field, true
}

// fieldOf returns a field of a struct, also of one that is embedded. It returns no valid value if there is no such field,
// or if the struct that has it is embedded as a nil pointer.
func fieldOf(value reflect.Value, name string) reflect.Value {
	field, ok := value.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}
	}
	found, err := value.FieldByIndexErr(field.Index)
	if err != nil {
		return reflect.Value{}
	}
	return found
}

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
