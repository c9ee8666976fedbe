package release

import (
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// appliedBy returns what a manager has written of an object: the manifest, as far as it is known.
func appliedBy(live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	owned := &fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" {
			continue
		}
		fields, err := managedfields.FieldsOf(&entry)
		if err != nil {
			return nil, fmt.Errorf("the %s %s: %w", live.GetKind(), live.GetName(), err)
		}
		owned = owned.Union(fields)
	}
	if owned.Empty() {
		return nil, fmt.Errorf("the %s %s: %w %q", live.GetKind(), live.GetName(), errNotWritten, manager)
	}
	content, _ := extract(live.Object, owned).(map[string]any)
	applied := &unstructured.Unstructured{Object: content}
	applied.SetGroupVersionKind(live.GroupVersionKind())
	applied.SetNamespace(live.GetNamespace())
	applied.SetName(live.GetName())
	return applied, nil
}

var errNotWritten = errors.New("nothing of it was written as")

// extract returns the part of a value that is in a set of fields.
func extract(from any, fields *fieldpath.Set) any {
	elements := elementsOf(fields)
	switch typed := from.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, element := range elements {
			if element.FieldName == nil {
				continue
			}
			if below, ok := typed[*element.FieldName]; ok {
				part[*element.FieldName] = extractBelow(below, fields, element)
			}
		}
		return part
	case []any:
		part := []any{}
		for i := range typed {
			for _, element := range elements {
				if element.Index != nil && *element.Index == i || managedfields.IsItem(typed[i], element) {
					part = append(part, extractBelow(typed[i], fields, element))
					break
				}
			}
		}
		return part
	}
	return from
}

// extractBelow returns the part of what an element of a path leads to. Without fields below, it is all of it.
func extractBelow(from any, fields *fieldpath.Set, element fieldpath.PathElement) any {
	below := fields.WithPrefix(element)
	if below.Empty() {
		return runtime.DeepCopyJSONValue(from)
	}
	part := extract(from, below)
	if item, ok := part.(map[string]any); ok && element.Key != nil {
		for _, field := range *element.Key {
			item[field.Name] = field.Value.Unstructured()
		}
	}
	return part
}

// elementsOf returns the first elements of the paths of a set, each once.
func elementsOf(fields *fieldpath.Set) []fieldpath.PathElement {
	var elements []fieldpath.PathElement
	known := &fieldpath.PathElementSet{}
	fields.Iterate(func(path fieldpath.Path) {
		if first := path.Copy()[0]; !known.Has(first) {
			known.Insert(first)
			elements = append(elements, first)
		}
	})
	return elements
}
