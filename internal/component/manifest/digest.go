package manifest

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

var digestEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// annotationLastApplied is where kubectl keeps a copy of the whole object.
const annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// digestOf returns a digest of normalized content: the first 16 bytes of the SHA-256 of its canonical JSON. It outlives
// the process and versions of libraries: if it changed, all objects would be written again, and some recreated.
func digestOf(content map[string]any, confidential bool) string {
	if confidential {
		content = withoutValues(content)
	}
	// Maps are written in the order of their keys. Normalized content cannot fail.
	relevant, _ := canonical(content)
	text, _ := json.Marshal(relevant)
	sum := sha256.Sum256(text)
	return digestEncoding.EncodeToString(sum[:16])
}

// canonical returns value without what does not matter, and whether that is a change. It copies only what changes. A
// creationTimestamp that is null means nothing; whether Go types write it depends on the version of a library. Decoders
// do not agree on whether a whole number is an integer.
func canonical(value any) (result any, changed bool) {
	switch v := value.(type) {
	case []any:
		list := v
		for i, element := range v {
			if element, ok := canonical(element); ok {
				if !changed {
					list, changed = slices.Clone(v), true
				}
				list[i] = element
			}
		}
		return list, changed
	case map[string]any:
		object := v
		for key, element := range v {
			absent := key == "creationTimestamp" && element == nil
			element, ok := canonical(element)
			if !absent && !ok {
				continue
			}
			if !changed {
				object, changed = maps.Clone(v), true
			}
			object[key] = element
			if absent {
				delete(object, key)
			}
		}
		return object, changed
	case float64:
		if v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64 {
			return int64(v), true
		}
	}
	return value, false
}

// withoutValues returns a Secret with the keys of its data, and none of the values: they could be guessed from a
// digest.
func withoutValues(content map[string]any) map[string]any {
	content = maps.Clone(content)
	if data, ok := content["data"].(map[string]any); ok {
		keys := make(map[string]any, len(data))
		for key := range data {
			keys[key] = ""
		}
		content["data"] = keys
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, ok := annotations[annotationLastApplied]; ok {
		annotations = maps.Clone(annotations)
		annotations[annotationLastApplied] = ""
		metadata = maps.Clone(metadata)
		metadata["annotations"] = annotations
		content["metadata"] = metadata
	}
	return content
}
