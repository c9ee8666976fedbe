// Package objects has what the packages of the harness do with objects of a table.
package objects

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// CopyAll returns copies of the objects that objs stand for. Objs often belongs to several cases.
func CopyAll(objs []client.Object) []client.Object {
	copies := make([]client.Object, len(objs))
	for i, obj := range objs {
		copies[i] = Copy(obj)
	}
	return copies
}

// Copy returns a deep copy of obj. As a client.Object, it is a copy of the object that obj stands for: builders,
// fixtures and the like implement client.Object without being the object, and their copy is the object. A builder whose
// copy is not of Type is returned as it is.
func Copy[Type client.Object](obj Type) Type {
	if c, ok := obj.DeepCopyObject().(Type); ok {
		return c
	}
	return obj
}

// KindOf returns the kind that obj has for the API server: the kind in the scheme, else the kind that is set on obj.
func KindOf(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err == nil {
		return kind, nil
	}
	if own := obj.GetObjectKind().GroupVersionKind(); !own.Empty() {
		return own, nil
	}
	return kind, fmt.Errorf("the kind of %T is neither in the scheme nor set on the object: %s: %w",
		obj, Register(obj), err)
}

// Register says how the type of obj gets into a scheme, or how obj gets a kind without one.
func Register(obj runtime.Object) string {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return "set its apiVersion and kind"
	}
	t := reflect.TypeOf(obj)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return "call AddToScheme of the package " + t.PkgPath()
}

// NotInScheme says what to do about an object whose type is not in the scheme of a table.
func NotInScheme(obj runtime.Object) string {
	return fmt.Sprintf("the type %T is not in the scheme of the table: %s", obj, Register(obj))
}

// Path returns namespace/name, or the name alone of an object without a namespace.
func Path(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Key is the kind and the name of an object.
type Key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// NewKey returns a Key.
func NewKey(kind schema.GroupVersionKind, name types.NamespacedName) Key { return Key{kind, name} }

// String names the object.
func (k Key) String() string { return Text(k.Kind, k.Namespace, k.Name) }

// Text returns the kind and the name of an object in words.
func Text(kind, namespace, name string) string {
	return strings.TrimSpace(kind + " " + Path(namespace, name))
}

// NameOf returns the kind and the name of an object in words. An object of an unknown kind has that of its Go type.
func NameOf(obj client.Object, scheme *runtime.Scheme) string {
	if gotype.IsNil(obj) {
		return "nil"
	}
	obj = Copy(obj)
	kind, err := KindOf(obj, scheme)
	switch {
	case err != nil:
		kind.Kind = fmt.Sprintf("%T", obj)
	case kind.Kind == "":
		kind.Kind = reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
	}
	name := obj.GetName()
	if name == "" && obj.GetGenerateName() != "" {
		name = obj.GetGenerateName() + "*"
	}
	return Text(kind.Kind, obj.GetNamespace(), name)
}

// GivenVersion is the resource version that a given object has that is given without one.
const GivenVersion = "999"

// AsGiven returns a copy of obj with the resource version that a given object has.
func AsGiven[Type client.Object](obj Type) Type {
	c := Copy(obj)
	if c.GetResourceVersion() == "" {
		c.SetResourceVersion(GivenVersion)
	}
	return c
}

// HasStatus reports whether an object has a status: a field of its Go type, or content of an unstructured object.
func HasStatus(obj client.Object) bool {
	if u, ok := obj.(runtime.Unstructured); ok {
		_, ok := u.UnstructuredContent()["status"]
		return ok
	}
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	_, ok := t.Elem().FieldByName("Status")
	return ok
}
