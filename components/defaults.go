package components

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultParameters returns what GetSpec of the resource returns, else its field Spec.
func defaultParameters[T client.Object](_ context.Context, resource T) (component.Unstructurable, error) {
	if specified, ok := any(resource).(interface {
		GetSpec() component.Unstructurable
	}); ok {
		return specified.GetSpec(), nil
	}
	if content, ok := any(resource).(runtime.Unstructured); ok {
		spec, _ := content.UnstructuredContent()["spec"].(map[string]any)
		return component.UnstructurableMap(runtime.DeepCopyJSON(spec)), nil
	}
	spec, ok := fieldOf(resource, "Spec")
	if !ok {
		return nil, fmt.Errorf("%s has no field Spec, so Parameters must be defined: %w", typeOf(resource), errNoSpec)
	}
	if specified, ok := spec.Addr().Interface().(component.Unstructurable); ok {
		return specified, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec.Addr().Interface())
	if err != nil {
		return nil, fmt.Errorf("the field Spec of %s cannot be turned into parameters: %w", typeOf(resource), err)
	}
	return component.UnstructurableMap(content), nil
}

var errNoSpec = errors.New("there is no spec")

// defaultStatus returns what GetStatus of the resource returns, else its field Status, or what is embedded there; nil
// if there is none.
func defaultStatus[T client.Object](resource T) *apis.ComponentStatus {
	if stated, ok := any(resource).(interface{ GetStatus() *apis.ComponentStatus }); ok {
		return stated.GetStatus()
	}
	status, ok := fieldOf(resource, "Status")
	if !ok {
		return nil
	}
	if found, ok := status.Addr().Interface().(*apis.ComponentStatus); ok {
		return found
	}
	if embedded := status.FieldByName(reflect.TypeFor[apis.ComponentStatus]().Name()); embedded.IsValid() && embedded.CanAddr() {
		if found, ok := embedded.Addr().Interface().(*apis.ComponentStatus); ok {
			return found
		}
	}
	return nil
}

// fieldOf returns a field that is a struct, or a pointer to one that is not nil, of what resource points to.
func fieldOf(resource any, name string) (reflect.Value, bool) {
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field := value.Elem().FieldByName(name)
	if field.IsValid() && field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return reflect.Value{}, false
		}
		field = field.Elem()
	}
	if !field.IsValid() || field.Kind() != reflect.Struct || !field.CanInterface() {
		return reflect.Value{}, false
	}
	return field, true
}

// typeOf names the type of the resource: by its kind if it has one, else by its Go type.
func typeOf(resource client.Object) string {
	if kind := resource.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	t := reflect.TypeOf(resource)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
