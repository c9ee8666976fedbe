package replay

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// content returns what must be the same in an object at the end of all runs, as JSON. It has no metadata that a server
// sets, and not what the fault Conflicts wrote. Times say that there is one, also within a text: a fault delays what
// follows. Conditions have no transition time. The observed generation says whether it is current, and is left out
// where it may be that of another object. What has no order in Kubernetes is sorted: conditions, finalizers and owner
// references.
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
		maskMetadata(metadata)
	}
	if status, ok := fields["status"].(map[string]any); ok {
		fields["status"] = maskStatus(status, obj.GetGeneration())
	}
	masked, _ := maskTexts(fields, m, cluster).(map[string]any)
	return masked
}

func maskMetadata(metadata map[string]any) {
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
		"deletionGracePeriodSeconds",
	} {
		delete(metadata, field)
	}
	sortItems(metadata["finalizers"])
	sortItems(metadata["ownerReferences"], "kind", "name")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		if delete(annotations, somebodyElseAnnotation); len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
}

const (
	aTime              = "a time"
	observedGeneration = "observedGeneration"
)

// times are those of RFC 3339.
var times = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})`)

// maskStatus changes a status, of an object of a generation.
func maskStatus(status map[string]any, current int64) map[string]any {
	own := []map[string]any{status}
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok {
			// A condition that was given without a time gets one if it changes to and fro.
			delete(fields, "lastTransitionTime")
			own = append(own, fields)
		}
	}
	observed := make([]any, len(own))
	for i, fields := range own {
		observed[i] = fields[observedGeneration]
	}
	removeObserved(status)
	sortItems(status["conditions"], "type")
	for i, fields := range own {
		if observed[i] != nil {
			fields[observedGeneration] = "outdated"
			if observed[i] == current {
				fields[observedGeneration] = "current"
			}
		}
	}
	return status
}

// removeObserved removes observed generations, in place.
func removeObserved(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, observedGeneration)
		for _, field := range value {
			removeObserved(field)
		}
	case []any:
		for _, item := range value {
			removeObserved(item)
		}
	}
}

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

// sortItems sorts a list, in place, by fields of its items.
func sortItems(list any, fields ...string) {
	items, _ := list.([]any)
	slices.SortStableFunc(items, func(a, b any) int {
		return cmp.Compare(sortKey(a, fields), sortKey(b, fields))
	})
}

func sortKey(item any, fields []string) string {
	values, ok := item.(map[string]any)
	if !ok {
		return fmt.Sprint(item)
	}
	key := ""
	for _, field := range fields {
		key += fmt.Sprintln(values[field])
	}
	return key
}

// maskTexts returns a value of a cluster without what is named by chance, and without times, also in keys.
func maskTexts(value any, m *mask, cluster string) any {
	switch value := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(value))
		for key, field := range value {
			masked[m.text(key, cluster)] = maskTexts(field, m, cluster)
		}
		return masked
	case []any:
		masked := make([]any, len(value))
		for i, item := range value {
			masked[i] = maskTexts(item, m, cluster)
		}
		return masked
	case string:
		return m.text(value, cluster)
	}
	return value
}
