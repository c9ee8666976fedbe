package release

import (
	"context"
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/espalier-dev/espalier/apis"
)

// objectKey identifies an object, whatever the version.
type objectKey struct {
	schema.GroupKind
	client.ObjectKey
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}
}

func recordKey(r *apis.InventoryRecord) objectKey {
	kind, name := schema.GroupKind{Group: r.Group, Kind: r.Kind}, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
	return objectKey{kind, name}
}

// Kept returns objects of the inventory of a release as they were applied last, so that they stay as they are when they
// are desired again: those for which keep returns true, and that are not among others.
func (c *Cluster) Kept(
	ctx context.Context, r *Release, others []*unstructured.Unstructured, keep func(*unstructured.Unstructured) bool,
) ([]*unstructured.Unstructured, error) {
	known := map[objectKey]bool{}
	for _, object := range others {
		key := keyOf(object)
		known[key] = true
		if key.Namespace == "" {
			// Either it is in no namespace, or in that of the release.
			key.Namespace = r.Namespace
			known[key] = true
		}
	}
	var kept []*unstructured.Unstructured
	for i := range r.Status.Inventory {
		record := &r.Status.Inventory[i]
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(recordKey(record).WithVersion(record.Version))
		live.SetNamespace(record.Namespace)
		live.SetName(record.Name)
		if known[keyOf(live)] || record.Digest == "" || record.Phase == apis.PhaseCompleted {
			continue
		}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
		switch {
		case apierrs.IsNotFound(err), meta.IsNoMatchError(err):
			// What is gone cannot be kept.
		case err != nil:
			return nil, fmt.Errorf("unable to read the %s %s, which is to stay: %w", record.Kind, record.Name, err)
		case keep(live):
			applied, err := appliedBy(live, r.Spec.FieldManager)
			if err != nil {
				return nil, err
			}
			kept = append(kept, applied)
		}
	}
	return kept, nil
}

// appliedBy returns what a manager has written of an object: the manifest, as far as it is known.
func appliedBy(live *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	owned := &fieldpath.Set{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			const why = "the managed fields of the %s %s are damaged: %w"
			return nil, fmt.Errorf(why, live.GetKind(), live.GetName(), err)
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
				if selects(element, i, typed[i]) {
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

// selects reports whether an element of a path stands for an item of a list.
func selects(element fieldpath.PathElement, index int, item any) bool {
	switch {
	case element.Index != nil:
		return *element.Index == index
	case element.Value != nil:
		return value.Equals(*element.Value, value.NewValueInterface(item))
	case element.Key == nil:
		return false
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, field := range *element.Key {
		if !value.Equals(field.Value, value.NewValueInterface(fields[field.Name])) {
			return false
		}
	}
	return true
}

// Selected returns the objects that a selector of labels selects.
func Selected(
	objects []*unstructured.Unstructured, matches func(metav1.Object) bool,
) (selected []*unstructured.Unstructured) {
	for _, object := range objects {
		if matches(object) {
			selected = append(selected, object)
		}
	}
	return selected
}
