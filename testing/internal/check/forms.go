package check

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Forms returns what a table may have for an object that was created or updated, the shortest first: typed, and without
// what a Differ usually ignores.
func Forms(obj client.Object, scheme *runtime.Scheme) []client.Object {
	var forms []client.Object
	if typed, ok := AsTyped(obj, scheme); ok {
		forms = append(forms, WithoutComputed(sentPart(typed, scheme)), sentPart(typed, scheme))
	}
	return append(forms, WithoutComputed(sentPart(obj, scheme)), sentPart(obj, scheme), objects.Copy(obj))
}

// ResourceForms returns what a table may have for a resource, the shortest first. The version that a given object
// without one has is left out.
func ResourceForms(obj client.Object, scheme *runtime.Scheme) []client.Object {
	full := objects.Copy(obj)
	if full.GetResourceVersion() == objects.GivenVersion {
		full.SetResourceVersion("")
	}
	full.SetManagedFields(nil)
	return []client.Object{
		WithoutComputed(sentPart(obj, scheme)), sentPart(obj, scheme), WithoutComputed(full), full,
	}
}

// AsTyped returns an unstructured object in the Go type that the scheme has for its kind. It is not ok for an object
// that has a Go type already, and for one with content that the type has no field for.
func AsTyped(obj client.Object, scheme *runtime.Scheme) (client.Object, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, false
	}
	typed, ok := made.(client.Object)
	if !ok || reflect.TypeOf(typed) == reflect.TypeOf(obj) {
		return nil, false
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true)
	return typed, err == nil
}

// WithoutComputed returns a copy of an object without transition times, and without what components compute.
func WithoutComputed(obj client.Object) client.Object {
	obj = objects.Copy(obj)
	clearTransitionTimes(reflect.ValueOf(obj))
	for _, status := range ComponentStatuses(obj) {
		IgnoreComputed(status)
	}
	annotations := obj.GetAnnotations()
	for _, key := range DigestsOf(obj.GetLabels()) {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
	return obj
}

// StatusPart returns a copy of an object that has its name and its status.
func StatusPart(obj client.Object) client.Object {
	obj = objects.Copy(obj)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		part := &unstructured.Unstructured{Object: map[string]any{}}
		if status, ok := u.Object["status"]; ok {
			part.Object["status"] = status
		}
		part.SetGroupVersionKind(u.GroupVersionKind())
		part.SetNamespace(u.GetNamespace())
		part.SetName(u.GetName())
		return part
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !v.Elem().FieldByName("Status").IsValid() {
		return obj
	}
	namespace, name := obj.GetNamespace(), obj.GetName()
	for i := range v.Elem().NumField() {
		if field := v.Elem().Field(i); field.CanSet() && v.Elem().Type().Field(i).Name != "Status" {
			field.SetZero()
		}
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// sentPart returns the part of a created or updated object that is compared by default.
func sentPart(obj client.Object, scheme *runtime.Scheme) client.Object {
	obj = objects.Copy(obj)
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetManagedFields(nil)
	if _, isUnstructured := obj.(runtime.Unstructured); isUnstructured {
		return obj
	}
	if _, _, err := scheme.ObjectKinds(obj); err == nil {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj
}

// InTypeOf converts an unstructured object to the Go type of expected, so that a table need not know in which form code
// sends an object. An object with content that the Go type has no field for stays as it is, and differs.
func InTypeOf(expected, observed client.Object) client.Object {
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

// DropEmptyStructs removes the members of a sent object that stand for structs with zero values. Code that does not
// make its configuration of a Go type does not have them. A pointer to an empty struct stays: it is something that is
// set.
func DropEmptyStructs(obj client.Object, members map[string]any) {
	dropEmptyStructs(reflect.ValueOf(obj), members)
}

func dropEmptyStructs(v reflect.Value, value any) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dropEmptyStructs(v.Elem(), value)
		}
	case reflect.Slice:
		if list, ok := value.([]any); ok && len(list) == v.Len() {
			for i := range list {
				dropEmptyStructs(v.Index(i), list[i])
			}
		}
	case reflect.Struct:
		members, ok := value.(map[string]any)
		for i := 0; ok && i < v.NumField(); i++ {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case field.Anonymous && name == "":
				dropEmptyStructs(v.Field(i), members)
			case v.Field(i).Kind() == reflect.Struct && v.Field(i).IsZero():
				delete(members, name)
			default:
				dropEmptyStructs(v.Field(i), members[name])
			}
		}
	}
}
