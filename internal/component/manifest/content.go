package manifest

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SchemeOf returns a scheme with the types that a generator registers, for Options, and nil if it registers none. It is
// a scheme of its own: other goroutines read the scheme of the operator, so nothing may be added to that.
func SchemeOf(g generator.Generator) (*runtime.Scheme, error) {
	extender, ok := g.(generator.SchemeExtender)
	if !ok {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	return scheme, extender.AddToScheme(scheme)
}

// contentOf returns a copy of what object holds, as JSON values.
func contentOf(object client.Object, options *Options) (map[string]any, error) {
	if gotype.IsNil(object) {
		return nil, errors.New("it is nil")
	}
	content, err := guarded(object, func() (map[string]any, error) {
		if u, ok := object.(runtime.Unstructured); ok {
			return u.UnstructuredContent(), nil
		}
		return convert(object, options)
	})
	if err != nil {
		return nil, err
	}
	return normalize(content)
}

// guarded calls methods of unknown types.
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

// convert returns the content of a typed object without what its Go type has added.
func convert(object client.Object, options *Options) (map[string]any, error) {
	kind, err := kindOf(object, options)
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
	dropAdded(content, kind.GroupKind() != kinds.CustomResourceDefinition, 0)
	return content, nil
}

// kindOf returns the kind of a typed object. If the schemes know kinds of its Go type, it is one of these, and it is
// the one that the object says, if it says one.
func kindOf(object client.Object, options *Options) (schema.GroupVersionKind, error) {
	var said schema.GroupVersionKind
	if typeMeta := object.GetObjectKind(); typeMeta != nil {
		said = typeMeta.GroupVersionKind()
	}
	candidates := registered(object, options.Scheme)
	if len(candidates) == 0 {
		candidates = registered(object, options.GeneratorScheme)
	}
	if len(candidates) == 0 {
		if said.Version == "" || said.Kind == "" {
			err := fmt.Errorf("it has no apiVersion and kind, and the scheme does not know the Go type %T", object)
			return said, err
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
		return said, fmt.Errorf("its apiVersion %q and kind %q are not those of the Go type %T",
			said.GroupVersion().String(), said.Kind, object)
	default:
		return said, fmt.Errorf("it has no apiVersion and kind, and the Go type %T has several", object)
	}
}

func registered(object client.Object, scheme *runtime.Scheme) []schema.GroupVersionKind {
	if scheme == nil {
		return nil
	}
	known, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(known), func(kind schema.GroupVersionKind) bool {
		return kind.Version == runtime.APIVersionInternal
	})
}

// dropAdded drops what Go types write without a value: a creationTimestamp that is null, of any metadata, and, with
// statuses, an empty status beside metadata and a spec, as templates of claims have it. In a schema, a status may be a
// property of that name.
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
