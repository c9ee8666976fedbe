package reconcilers

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/jsonmerge"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/objectname"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isAbsent reports whether obj stands for an object that the cluster does not have.
func isAbsent(obj client.Object) bool {
	if gotype.IsNil(obj) {
		return true
	}
	created := obj.GetCreationTimestamp()
	return created.IsZero()
}

var errNoEmptyValue = errors.New("no empty value can be made of it")

// emptyOf returns an empty T, which must be a pointer type. It returns an error for an interface.
func emptyOf[T any]() (T, error) {
	var none T
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return none, fmt.Errorf("type %s: %w", t, errNoEmptyValue)
	}
	return reflect.New(t.Elem()).Interface().(T), nil
}

// defaultType returns given, or an empty value if it is nil. If no empty value can be made, it returns nil, which the
// check of the node reports.
func defaultType[T any](given T) T {
	if !gotype.IsNil(given) {
		return given
	}
	if made, err := emptyOf[T](); err == nil {
		return made
	}
	return given
}

// copyOf returns a deep copy of obj as a T. The copy of a builder of objects is the object that it builds.
func copyOf[T client.Object](obj T) T {
	return obj.DeepCopyObject().(T)
}

// typeName returns the kind of obj if it has one, else the name of its Go type.
func typeName(obj any) string {
	if gotype.IsNil(obj) {
		return ""
	}
	if o, ok := obj.(runtime.Object); ok {
		if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
			return kind
		}
	}
	return gotype.Name(reflect.TypeOf(obj))
}

// describeObject names obj as [objectname.Of] does, for error texts. It returns no text for nil.
func describeObject(obj client.Object) string {
	if gotype.IsNil(obj) {
		return ""
	}
	return objectname.Of(obj)
}

// lacksKind reports whether obj is unstructured and has no kind.
func lacksKind(obj client.Object) bool {
	_, unstructured := obj.(runtime.Unstructured)
	return unstructured && obj.GetObjectKind().GroupVersionKind().Kind == ""
}

// watchable returns an object for whose type there can be an informer: obj itself, or an unstructured object of the
// same kind if obj has a duck type.
func watchable(obj client.Object, scheme *runtime.Scheme) client.Object {
	if !duck.IsDuck(obj, scheme) {
		return obj
	}
	standIn := &unstructured.Unstructured{}
	standIn.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return standIn
}

// kindOf returns the kind of obj, or an empty kind if it is not known.
func kindOf(c client.Client, obj client.Object) schema.GroupVersionKind {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gvk
}

// normalize gives the content of an unstructured object the types that the API machinery knows. The API machinery
// panics when it copies content of other types, and finds it unequal to the same content from the server. Objects of Go
// types are not changed.
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

// moveStringData moves the stringData of a Secret to its data, as the API server does, which never returns it. So a
// comparison with an answer of the API server finds a key that somebody changed.
func moveStringData(obj client.Object) {
	switch secret := obj.(type) {
	case *corev1.Secret:
		if secret == nil || len(secret.StringData) == 0 {
			return
		}
		data := maps.Clone(secret.Data)
		if data == nil {
			data = make(map[string][]byte, len(secret.StringData))
		}
		for name, text := range secret.StringData {
			data[name] = []byte(text)
		}
		secret.Data, secret.StringData = data, nil
	case *unstructured.Unstructured:
		if secret.GroupVersionKind().GroupKind() == kinds.Secret {
			managedfields.MoveStringData(secret.Object)
		}
	}
}

// contentOf returns the content of obj. The caller must not change it.
func contentOf(obj client.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// typed returns the answer of the server as an object of the type of sample.
func typed[T client.Object](answer *unstructured.Unstructured, sample T) (T, error) {
	obj := copyOf(sample)
	if u, ok := any(obj).(runtime.Unstructured); ok {
		u.SetUnstructuredContent(answer.Object)
		return obj, nil
	}
	reflect.ValueOf(obj).Elem().SetZero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, obj); err != nil {
		var none T
		return none, fmt.Errorf("the answer of the API server is no %T: %w", obj, err)
	}
	return obj, nil
}

// sameContent reports whether two versions of an object differ at most in their managed fields and their status.
func sameContent[T client.Object](before, after T) bool {
	if generation := before.GetGeneration(); generation != 0 && generation == after.GetGeneration() {
		// A cache reads protobuf, which leaves out the kinds of what is nested, as the claims of a StatefulSet.
		return sameMetadata(before, after)
	}
	before, after = unmanaged(before), unmanaged(after)
	after.SetResourceVersion(before.GetResourceVersion())
	after.GetObjectKind().SetGroupVersionKind(before.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(before, after)
}

// sameMetadata reports whether two versions of an object have the same metadata, as far as clients set it.
func sameMetadata(before, after client.Object) bool {
	return maps.Equal(before.GetLabels(), after.GetLabels()) &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations()) &&
		slices.Equal(before.GetFinalizers(), after.GetFinalizers()) &&
		equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// unmanaged returns a copy of obj without the managed fields, which would fill the log.
func unmanaged[T client.Object](obj T) T {
	obj = copyOf(obj)
	obj.SetManagedFields(nil)
	return obj
}

// indexedType returns the type of obj as the index by owner has it.
func indexedType(c client.Client, obj client.Object) listing.Type {
	return listing.Type{Kind: kindOf(c, obj), Watched: watchable(obj, c.Scheme())}
}
