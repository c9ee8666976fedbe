package store

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkFields returns an error for the fields that the kind does not have. It is for requests with the field validation
// "Strict"; without it such fields are dropped.
func (r *resource) checkFields(content map[string]any) error {
	obj := r.New()
	known, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, obj, true)
	}
	known.Object = runtime.DeepCopyJSON(content)
	r.PrepareForCreate(known)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if name != "metadata" && name != "status" {
			errs = append(errs, unknownFields(name, content[name], known.Object[name])...)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return runtime.NewStrictDecodingError(errs)
}

// unknownFields returns an error for each field of a value that is not in what is left of it.
func unknownFields(path string, sent, left any) (errs []error) {
	switch sent := sent.(type) {
	case nil:
	case map[string]any:
		fields, ok := left.(map[string]any)
		if !ok {
			return []error{fmt.Errorf("unknown field %q", path)}
		}
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			errs = append(errs, unknownFields(path+"."+name, sent[name], fields[name])...)
		}
	case []any:
		items, ok := left.([]any)
		if !ok {
			return []error{fmt.Errorf("unknown field %q", path)}
		}
		for i := range min(len(sent), len(items)) {
			errs = append(errs, unknownFields(fmt.Sprintf("%s[%d]", path, i), sent[i], items[i])...)
		}
	default:
		if left == nil {
			return []error{fmt.Errorf("unknown field %q", path)}
		}
	}
	return errs
}
