package manifest

import (
	"errors"
	"fmt"
	"reflect"
	goruntime "runtime"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentOf returns what object holds, as JSON values that are a copy of it.
func contentOf(object client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	if isNil(object) {
		return nil, errors.New("it is nil")
	}
	content, err := guarded(object, func() (map[string]any, error) {
		if u, ok := object.(runtime.Unstructured); ok {
			return u.UnstructuredContent(), nil
		}
		return convert(object, scheme)
	})
	if err != nil {
		return nil, err
	}
	return normalize(content)
}

func isNil(object client.Object) bool {
	if object == nil {
		return true
	}
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// guarded calls methods of types that we do not know.
func guarded(object client.Object, call func() (map[string]any, error)) (content map[string]any, err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		reason := errors.New("a method of it panics")
		// Any other cause may hold data.
		if fault, ok := cause.(goruntime.Error); ok {
			reason = fmt.Errorf("a method of it panics: %w", fault)
		}
		content, err = nil, fmt.Errorf("the Go type %T cannot be converted: %w", object, reason)
	}()
	return call()
}

// convert passes a typed object through JSON, once, and drops what its Go type has added.
func convert(object client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	kind, err := kindOf(object, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("the Go type %T cannot be converted: %w", object, err)
	}
	if content == nil {
		return nil, fmt.Errorf("the Go type %T cannot be converted", object)
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	dropAdded(content, kind.GroupKind() != crdKind, 0)
	return content, nil
}

// kindOf returns the kind of a typed object: the one that it says, which must be one of those that the scheme knows for its Go
// type, if it knows any, or the one that the scheme knows.
func kindOf(object client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	var said schema.GroupVersionKind
	if typeMeta := object.GetObjectKind(); typeMeta != nil {
		said = typeMeta.GroupVersionKind()
	}
	candidates := registered(object, scheme)
	if len(candidates) == 0 {
		if said.Version == "" || said.Kind == "" {
			return said, fmt.Errorf("it has no apiVersion and kind, and the scheme does not know the Go type %T", object)
		}
		return said, nil
	}
	var fitting []schema.GroupVersionKind
	for _, candidate := range candidates {
		kindFits := said.Kind == "" || said.Kind == candidate.Kind
		versionFits := said.GroupVersion().Empty() || said.GroupVersion() == candidate.GroupVersion()
		if kindFits && versionFits {
			fitting = append(fitting, candidate)
		}
	}
	switch len(fitting) {
	case 1:
		return fitting[0], nil
	case 0:
		return said, fmt.Errorf("its apiVersion %q and kind %q are not those of the Go type %T", said.GroupVersion().String(), said.Kind, object)
	default:
		return said, fmt.Errorf("it has no apiVersion and kind, and the Go type %T has several", object)
	}
}

func registered(object client.Object, scheme *runtime.Scheme) []schema.GroupVersionKind {
	if scheme == nil {
		return nil
	}
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return nil
	}
	served := kinds[:0:0]
	for _, kind := range kinds {
		if kind.Version != runtime.APIVersionInternal {
			served = append(served, kind)
		}
	}
	return served
}

// dropAdded drops what Go types write although nobody has set it: metadata.creationTimestamp, null, of any metadata, and, with
// statuses, an empty status beside metadata and a spec, as templates of claims have it. In a schema, these may mean
// properties of that name.
func dropAdded(value any, statuses bool, depth int) {
	if depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			dropAdded(element, statuses, depth+1)
		}
	case map[string]any:
		metadata, hasMetadata := v["metadata"].(map[string]any)
		if at, ok := metadata["creationTimestamp"]; ok && at == nil {
			delete(metadata, "creationTimestamp")
		}
		_, hasSpec := v["spec"]
		if status, ok := v["status"].(map[string]any); ok && statuses && hasMetadata && hasSpec && len(status) == 0 {
			delete(v, "status")
		}
		for _, element := range v {
			dropAdded(element, statuses, depth+1)
		}
	}
}
