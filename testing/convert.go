package testing

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inTypeOf returns an unstructured object as one of the Go type of expected, so that a table need not know in which form code
// sends what it sends. An object with content that the Go type has no field for stays as it is, and differs.
func inTypeOf(expected, observed client.Object) client.Object {
	if _, ok := expected.(*Inventory); ok {
		return asInventory(observed)
	}
	u, ok := observed.(*unstructured.Unstructured)
	if _, alike := expected.(runtime.Unstructured); !ok || alike || reflect.TypeOf(expected).Kind() != reflect.Pointer {
		return observed
	}
	typed, ok := reflect.New(reflect.TypeOf(expected).Elem()).Interface().(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true) != nil {
		return observed
	}
	return typed
}
