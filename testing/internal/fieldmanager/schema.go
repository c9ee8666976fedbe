package fieldmanager

import (
	"fmt"
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// mergeSchema makes objects of a kind, and converts them to other versions, to values with a merge schema, and back.
// All versions have the schema of one. Values share memory with objects.
type mergeSchema struct {
	runtime.ObjectConvertor
	kind   schema.GroupVersionKind
	create func() client.Object
	// empty returns the value of an empty object. Its schema is that of all objects.
	empty func() (*typed.TypedValue, error)
}

func newMergeSchema(
	kind schema.GroupVersionKind, converter func() managedfields.TypeConverter, create func() client.Object,
) *mergeSchema {
	s := &mergeSchema{kind: kind, create: create}
	s.empty = sync.OnceValues(func() (*typed.TypedValue, error) {
		return converter().ObjectToTyped(s.with(nil, nil))
	})
	return s
}

// with returns a copy of an object, or an empty one for nil, that has its kind and the given managed fields. The copy
// shares memory with the object.
func (s *mergeSchema) with(obj client.Object, entries []metav1.ManagedFieldsEntry) client.Object {
	if obj == nil {
		obj = s.create()
	} else {
		obj = shallowCopy(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(s.kind)
	obj.SetManagedFields(entries)
	return obj
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

// New implements [runtime.ObjectCreater].
func (s *mergeSchema) New(schema.GroupVersionKind) (runtime.Object, error) {
	return s.with(nil, nil), nil
}

// Default implements [runtime.ObjectDefaulter].
func (*mergeSchema) Default(runtime.Object) {}

// ConvertToVersion implements [runtime.ObjectConvertor].
func (s *mergeSchema) ConvertToVersion(obj runtime.Object, version runtime.GroupVersioner) (runtime.Object, error) {
	kind, ok := version.KindForGroupVersionKinds([]schema.GroupVersionKind{s.kind})
	if !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("merge schema", reflect.TypeOf(obj), version)
	}
	if kind != obj.GetObjectKind().GroupVersionKind() {
		obj = shallowCopy(obj.(client.Object))
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return obj, nil
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (s *mergeSchema) ObjectToTyped(
	obj runtime.Object, options ...typed.ValidationOptions,
) (*typed.TypedValue, error) {
	empty, err := s.empty()
	if err != nil {
		return nil, err
	}
	if live := obj.(client.Object); live.GetManagedFields() != nil {
		obj = s.with(live, nil) // Nobody manages managed fields. To compare them takes a third of an apply.
	}
	parseable := typed.ParseableType{Schema: empty.Schema(), TypeRef: empty.TypeRef()}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return parseable.FromUnstructured(u.Object, options...)
	}
	return parseable.FromStructured(obj, options...)
}

// TypedToObject implements [managedfields.TypeConverter]. The object is a copy in the Go type of the kind.
func (s *mergeSchema) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", value.AsValue().Unstructured())
	}
	obj := s.create()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(content)
		return u, nil
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
