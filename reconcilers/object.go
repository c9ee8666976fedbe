package reconcilers

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/jsonmerge"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isNil tells whether obj is nil or an interface that holds a nil pointer, which is how a node says that there is no
// object.
func isNil(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	switch v.Kind() {
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

// isAbsent tells whether obj stands for an object that the cluster does not have.
func isAbsent(obj client.Object) bool {
	if isNil(obj) {
		return true
	}
	created := obj.GetCreationTimestamp()
	return created.IsZero()
}

var errNoEmptyValue = errors.New("no empty value can be made of it")

// emptyOf makes an empty T, which must be a pointer type. For an interface there is nothing to make: the author has to
// give an object of the type.
func emptyOf[T any]() (T, error) {
	var none T
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return none, fmt.Errorf("type %s: %w", t, errNoEmptyValue)
	}
	return reflect.New(t.Elem()).Interface().(T), nil
}

// defaultType makes an empty value for a type that the author did not give. Where none can be made it stays nil, for
// the check of the node to report.
func defaultType[T any](given T) T {
	if !isNil(given) {
		return given
	}
	if made, err := emptyOf[T](); err == nil {
		return made
	}
	return given
}

// copyOf returns a deep copy of obj as a T. Builders that stand for another object yield that object.
func copyOf[T client.Object](obj T) T {
	return obj.DeepCopyObject().(T)
}

// typeName names the type of obj as people do: by its kind if it carries one, else by its Go type.
func typeName(obj any) string {
	if isNil(obj) {
		return ""
	}
	if o, ok := obj.(runtime.Object); ok {
		if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			return kind
		}
	}
	t := reflect.TypeOf(obj)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// describeObject names obj by kind and, where they are known and not generated, namespace and name. It is the form that
// error texts use, so it has nothing in it that changes from run to run.
func describeObject(obj client.Object) string {
	if isNil(obj) {
		return ""
	}
	name := obj.GetName()
	if prefix := obj.GetGenerateName(); prefix != "" {
		name = prefix + "*"
	}
	if name == "" {
		return typeName(obj)
	}
	if namespace := obj.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return typeName(obj) + " " + name
}

// lacksKind tells whether obj is unstructured and does not say what it is.
func lacksKind(obj client.Object) bool {
	_, unstructured := obj.(runtime.Unstructured)
	return unstructured && obj.GetObjectKind().GroupVersionKind().Kind == ""
}

// watchable returns an object of the type of obj that informers can be made for: a duck type gives way to an
// unstructured stand-in.
func watchable(obj client.Object, scheme *runtime.Scheme) client.Object {
	if !duck.IsDuck(obj, scheme) {
		return obj
	}
	standIn := &unstructured.Unstructured{}
	standIn.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return standIn
}

// kindOf returns the kind of obj, empty where it cannot be told.
func kindOf(c client.Client, obj client.Object) schema.GroupVersionKind {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gvk
}

// normalize gives the content of an unstructured object the types that the API machinery knows. It panics when it is to
// copy other types, and finds them unequal to the same content as the server returns it. Other objects are left alone.
func normalize(obj client.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil {
		return nil
	}
	content, err := jsonmerge.Normalize(u.Object)
	if err != nil {
		return fmt.Errorf("the content of %s cannot be sent: %w", describeObject(obj), err)
	}
	u.Object = content
	return nil
}
