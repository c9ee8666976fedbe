package fieldmanager

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// mergeSchema converts objects of a kind to values with a merge schema, and back. Values share memory with objects.
type mergeSchema struct {
	kind   schema.GroupVersionKind
	create func() client.Object
	// empty returns the value of an empty object. Its schema is that of all objects. A converter finds it anew for each
	// object, at the cost of a tenth of an apply.
	empty func() (*typed.TypedValue, error)
}

func newMergeSchema(
	kind schema.GroupVersionKind, converter func() managedfields.TypeConverter, create func() client.Object,
) *mergeSchema {
	s := &mergeSchema{kind: kind, create: create}
	s.empty = sync.OnceValues(func() (*typed.TypedValue, error) { return converter().ObjectToTyped(s.orEmpty(nil)) })
	return s
}

// typed returns the value of an object with its kind. It fails if the object does not fit the schema.
func (s *mergeSchema) typed(obj client.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	empty, err := s.empty()
	if err != nil {
		return nil, err
	}
	parseable := typed.ParseableType{Schema: empty.Schema(), TypeRef: empty.TypeRef()}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return parseable.FromUnstructured(u.Object, options...)
	}
	return parseable.FromStructured(obj, options...)
}

// stored returns the value of a stored object. Nil is an empty one. A stored object may lack its kind, and lists in it
// may have an item twice.
func (s *mergeSchema) stored(obj client.Object) (*typed.TypedValue, error) {
	if obj == nil {
		return s.empty()
	}
	if obj.GetManagedFields() != nil || obj.GetObjectKind().GroupVersionKind() != s.kind {
		obj = shallowCopy(obj)
		obj.SetManagedFields(nil)
		obj.GetObjectKind().SetGroupVersionKind(s.kind)
	}
	return s.typed(obj, typed.AllowDuplicates)
}

// shallowCopy returns a copy whose kind and metadata can be set.
func shallowCopy(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content := maps.Clone(u.Object)
		if metadata, ok := content["metadata"].(map[string]any); ok {
			content["metadata"] = maps.Clone(metadata)
		}
		return &unstructured.Unstructured{Object: content}
	}
	original := reflect.ValueOf(obj).Elem()
	c := reflect.New(original.Type())
	c.Elem().Set(original)
	return c.Interface().(client.Object)
}

func (s *mergeSchema) orEmpty(obj client.Object) client.Object {
	if obj == nil {
		obj = s.create()
		obj.GetObjectKind().SetGroupVersionKind(s.kind)
	}
	return obj
}

// object returns a copy of a value in the Go type of the kind.
func (s *mergeSchema) object(v *typed.TypedValue) (client.Object, error) {
	content, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", v.AsValue().Unstructured())
	}
	obj := s.create()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(content)
		return u, nil
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

// describe names an object as an API server does in errors. Nil has no name.
func (s *mergeSchema) describe(obj client.Object) string {
	namespace, name := "", ""
	if obj != nil {
		namespace, name = obj.GetNamespace(), obj.GetName()
	}
	return fmt.Sprintf("%s/%s; %v", namespace, name, s.kind)
}

var errOtherGroup = errors.New("the version is of another group")

// Convert implements [merge.Converter]. Versions differ in nothing but their name.
func (s *mergeSchema) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	if gv, err := schema.ParseGroupVersion(string(version)); err != nil || gv.Group != s.kind.Group {
		return nil, errOtherGroup
	}
	return object, nil
}

// IsMissingVersionError implements [merge.Converter].
func (*mergeSchema) IsMissingVersionError(err error) bool { return errors.Is(err, errOtherGroup) }
