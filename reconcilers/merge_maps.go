package reconcilers

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MergeMaps returns a new map with the entries of all maps. For equal keys, the entry of the later map wins. The result
// is never nil, and the arguments are not changed.
func MergeMaps(ms ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range ms {
		maps.Copy(merged, m)
	}
	return merged
}

// MergeLabels puts the labels and annotations of desired on current, and leaves those that others have put there. It is
// for a MergeBeforeUpdate. A label that is no longer desired stays; server-side apply would remove it.
func MergeLabels(current, desired client.Object) {
	if labels := desired.GetLabels(); len(labels) > 0 {
		current.SetLabels(MergeMaps(current.GetLabels(), labels))
	}
	if annotations := desired.GetAnnotations(); len(annotations) > 0 {
		current.SetAnnotations(MergeMaps(current.GetAnnotations(), annotations))
	}
}
