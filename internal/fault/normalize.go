package fault

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// normalize returns what must be the same in an object of each run. Fields are those of the object as JSON; they are
// changed. Text replaces what is named by chance in a text, also in keys.
//
// The result has no metadata that a server sets. Times say that there is one, also within a text. Conditions have no
// transition time. The observed generation of the status and of its conditions says whether it is current, and is left
// out where it may be that of another object. Object references have no version and no UID. What has no order in
// Kubernetes is sorted: conditions, finalizers and owner references.
func normalize(fields map[string]any, text func(string) string) map[string]any {
	metadata, _ := fields["metadata"].(map[string]any)
	status, _ := fields["status"].(map[string]any)
	normalizeStatus(status, metadata["generation"])
	normalizeMetadata(metadata)
	for field, value := range fields {
		if field != "metadata" {
			normalizeReferences(value)
		}
	}
	normalized, _ := replace(fields, func(s string) string { return maskTimes(text(s)) }).(map[string]any)
	return normalized
}

// times are those of RFC 3339.
var times = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})`)

// maskTimes returns a text in which "a time" stands for each time.
func maskTimes(text string) string { return times.ReplaceAllLiteralString(text, "a time") }

func normalizeMetadata(metadata map[string]any) {
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
		"deletionGracePeriodSeconds",
	} {
		delete(metadata, field)
	}
	sortItems(metadata["finalizers"])
	sortItems(metadata["ownerReferences"], "kind", "name")
}

const observedGeneration = "observedGeneration"

// normalizeStatus changes the status of an object of a generation, which may be unknown.
func normalizeStatus(status map[string]any, current any) {
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

// referenceFields are those of an ObjectReference.
var referenceFields = sets.New("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath")

// normalizeReferences removes the version and the UID from all that can be an ObjectReference, in place: a fault has
// objects be written more often, so a reference that is made afterwards has a later version.
func normalizeReferences(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["name"] != nil && referenceFields.HasAll(slices.Collect(maps.Keys(value))...) {
			delete(value, "resourceVersion")
			delete(value, "uid")
			return
		}
		for _, field := range value {
			normalizeReferences(field)
		}
	case []any:
		for _, item := range value {
			normalizeReferences(item)
		}
	}
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

// replace returns a value with other texts, also in keys.
func replace(value any, text func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(value))
		for key, field := range value {
			replaced[text(key)] = replace(field, text)
		}
		return replaced
	case []any:
		replaced := make([]any, len(value))
		for i, item := range value {
			replaced[i] = replace(item, text)
		}
		return replaced
	case string:
		return text(value)
	}
	return value
}
