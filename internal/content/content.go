// Package content looks at objects as they are in JSON, whether these are typed or unstructured.
package content

import (
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

var errNoObject = errors.New("there is no object to look at")

// KindOf returns the kind that an object says it has. A typed object that does not say so has the kind of its Go type
// if that is built-in, or else an empty one.
func KindOf(object client.Object) schema.GroupVersionKind {
	if Missing(object) {
		return schema.GroupVersionKind{}
	}
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind != "" {
		return kind
	}
	if _, ok := object.(runtime.Unstructured); ok {
		return kind
	}
	if known, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		return known[0]
	}
	return kind
}

// Of returns an object as it is in JSON, with the kind. An unstructured object is not copied, so the result must not be
// changed.
func Of(kind schema.GroupVersionKind, object client.Object) (*unstructured.Unstructured, error) {
	if Missing(object) {
		return nil, errNoObject
	}
	u, ok := object.(*unstructured.Unstructured)
	if ok && u.GroupVersionKind() == kind {
		return u, nil
	}
	if ok {
		u = &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	} else {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		u = &unstructured.Unstructured{Object: fields}
	}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Missing reports whether there is no object, not even an empty one.
func Missing(object client.Object) bool {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u == nil || u.Object == nil
	}
	return gotype.IsNil(object)
}

// Field returns the value at a path, nil if there is none.
func Field(object *unstructured.Unstructured, path ...string) any { return At(object.Object, path...) }

// At returns the value at a path of fields, nil if there is none.
func At(fields map[string]any, path ...string) any {
	var value any = fields
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// Number returns the integer at a path, or fallback if there is none.
func Number(object *unstructured.Unstructured, fallback int64, path ...string) int64 {
	if n, ok := Field(object, path...).(int64); ok {
		return n
	}
	return fallback
}

// Text returns the text at a path, or the empty one.
func Text(object *unstructured.Unstructured, path ...string) string {
	text, _ := Field(object, path...).(string)
	return text
}

// Is reports whether the value at a path is true.
func Is(object *unstructured.Unstructured, path ...string) bool {
	is, _ := Field(object, path...).(bool)
	return is
}

// List returns the list at a path, or none.
func List(object *unstructured.Unstructured, path ...string) []any {
	list, _ := Field(object, path...).([]any)
	return list
}

// NeverObserved is the observed generation of an object that will have one and has none yet.
const NeverObserved = int64(-1)

// Observed reports whether the generation of an object is the one that its controller has seen.
func Observed(object *unstructured.Unstructured) bool {
	return Number(object, NeverObserved, "status", "observedGeneration") >= Number(object, 0, "metadata", "generation")
}
