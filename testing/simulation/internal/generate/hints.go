package generate

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
)

// Hints are the values to draw from, by the path of a field. They are for what a schema does not say, such as the names
// of other objects: ".spec.serviceAccountName". The items of a list and the values of a map have the path of the list
// or map and "[*]": ".spec.ports[*].name". The keys of a map have its path and "[key]": ".spec.quota[key]". The values
// are what encoding to JSON makes of them.
//
// A field with one value always has it. A field with no value is always left out, and a map without keys is empty. The
// values count before the enum, pattern and such of the field, but still have to be valid.
type Hints map[string][]any

// normalized returns the values as they are in an unstructured object.
func (h Hints) normalized() (Hints, error) {
	normalized := Hints{}
	for _, path := range slices.Sorted(maps.Keys(h)) {
		values := make([]any, len(h[path]))
		for i, value := range h[path] {
			encoded, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("hint for %s: %w", path, err)
			}
			if err := json.Unmarshal(encoded, &values[i]); err != nil {
				return nil, fmt.Errorf("hint for %s: %w", path, err)
			}
		}
		normalized[path] = values
	}
	return normalized, nil
}

// normalize makes numbers of a schema what an unstructured object has.
func normalize(value any) any {
	switch value := value.(type) {
	case float64:
		return decoded(value)
	case []any:
		for i := range value {
			value[i] = normalize(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = normalize(value[key])
		}
	}
	return value
}
