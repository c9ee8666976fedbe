package component

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Generator makes the objects of a component. It must be safe for concurrent use.
type Generator interface {
	// Generate returns the objects that are desired, in any order. An object may be typed or unstructured; where it is typed and
	// carries no kind, the scheme has to know it, see [SchemeExtender].
	//
	// namespace and name are where the component is deployed to, and as what. parameters are what the resource asks for, as a
	// rule its spec; a generator that knows the type of the spec may assert it. They are never nil, and must not be changed.
	// What else is known of the component is in ctx, see [Context].
	//
	// The objects belong to the caller, who may change them: the generator neither keeps them nor returns them twice.
	//
	// On an error nothing of the component is changed; in particular, nothing is deleted. Return a [RetriableError] where
	// something is merely not there yet. No objects and no error means that the component is to have none: all that it had go.
	Generate(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error)
}

// GeneratorFunc is a function that is a [Generator].
type GeneratorFunc func(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error)

// Generate calls f. A nil f is an error.
func (f GeneratorFunc) Generate(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error) {
	if f == nil {
		return nil, errNoGenerator
	}
	return f(ctx, namespace, name, parameters)
}

var errNoGenerator = errors.New("there is no generator")

// Deterministic is implemented by a [Generator] or a transformer that can promise that its output depends on nothing but its
// arguments and what the context carries. The output may then be used again while these are the same.
//
// What reads from a cluster, with a client of the context for instance, from the clock, or from a source of random numbers,
// cannot promise that. Without the interface, nothing is promised.
type Deterministic interface {
	// Deterministic tells whether the promise is made.
	Deterministic() bool
}

// IsDeterministic tells whether v promises to be [Deterministic].
func IsDeterministic(v any) bool {
	d, ok := v.(Deterministic)
	return ok && d.Deterministic()
}

// SchemeExtender is implemented by a [Generator] whose objects are of Go types that the scheme of the operator may not know.
type SchemeExtender interface {
	// AddToScheme registers the types. It is called once, before the generator is used.
	AddToScheme(scheme *runtime.Scheme) error
}

// Unstructurable is what can be had as a map, the way JSON would have it. A spec implements it to be the parameters of a
// [Generator].
type Unstructurable interface {
	// ToUnstructured returns the value as a map, which is the caller's own: changing it, at any depth, changes nothing else.
	ToUnstructured() map[string]any
}

// UnstructurableMap is a map that is [Unstructurable].
type UnstructurableMap map[string]any

// ToUnstructured returns a deep copy of m, which is never nil. Maps and slices of any type are copied. Values behind pointers are
// shared.
func (m UnstructurableMap) ToUnstructured() map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return copyMap(m)
}

func copyMap(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for key, value := range out {
		out[key] = deepCopy(value)
	}
	return out
}

// deepCopy does what runtime.DeepCopyJSONValue does, for values of all types. Maps that are written in Go may hold an int32 or a
// []string, with which that function panics.
func deepCopy(value any) any {
	switch v := value.(type) {
	case nil, string, bool, int, int32, int64, float64:
		return v
	case map[string]any:
		return copyMap(v)
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = deepCopy(out[i])
		}
		return out
	default:
		return reflectCopy(reflect.ValueOf(value)).Interface()
	}
}

func reflectCopy(v reflect.Value) reflect.Value {
	switch kind := v.Kind(); {
	case kind != reflect.Map && kind != reflect.Slice && kind != reflect.Interface, v.IsNil():
		return v
	case kind == reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for iter := v.MapRange(); iter.Next(); {
			out.SetMapIndex(iter.Key(), reflectCopy(iter.Value()))
		}
		return out
	case kind == reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(reflectCopy(v.Index(i)))
		}
		return out
	default:
		return reflectCopy(v.Elem())
	}
}
