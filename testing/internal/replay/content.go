package replay

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/normalize"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// content returns what must be the same in an object at the end of all runs, as JSON: not what the fault Conflicts
// wrote, nor what is named by chance.
func content(obj client.Object, m *mask, cluster string) map[string]any {
	if obj == nil {
		return nil
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		// The converter does not copy it.
		obj = obj.DeepCopyObject().(client.Object)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return map[string]any{"cannot be encoded": err.Error()}
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			if delete(annotations, somebodyElseAnnotation); len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
	}
	return normalize.Object(fields, func(text string) string { return m.text(text, cluster) })
}

const observedGeneration = "observedGeneration"

// observes reports whether nothing but the observed generation of an object changed.
func observes(change store.Change) bool {
	if change.Before == nil || change.After == nil || change.Before.GetGeneration() != change.After.GetGeneration() {
		return false
	}
	before, _ := unobserved(change.Before)
	after, observed := unobserved(change.After)
	return observed && equality.Semantic.DeepEqual(before, after)
}

// unobserved returns an object without its observed generation, and whether it had one, and without what each write
// changes.
func unobserved(obj client.Object) (fields map[string]any, had bool) {
	// The converter does not copy unstructured content.
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, false
	}
	status, _ := fields["status"].(map[string]any)
	_, had = status[observedGeneration]
	if delete(status, observedGeneration); len(status) == 0 {
		delete(fields, "status")
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
	}
	return fields, had
}
