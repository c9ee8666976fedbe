package reconcilers

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// normalize gives the content of an unstructured object the types that the API machinery knows. Authors write int and []string
// where it has int64 and []any only: it panics when it is to copy such content, and finds it unequal to the same content as the
// server returns it. Other objects are left alone.
func normalize(obj client.Object) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u == nil {
		return nil
	}
	content, err := normalized(u.Object)
	if err != nil {
		return fmt.Errorf("the content of %s cannot be sent: %w", describeObject(obj), err)
	}
	u.Object = content
	return nil
}

// normalized returns content with the types that the API machinery knows: itself if it has them already.
func normalized(content map[string]any) (map[string]any, error) {
	if isNormal(content, 0) {
		return content, nil
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	err = utiljson.Unmarshal(data, &decoded)
	return decoded, err
}

// maxNormalDepth is how deeply what is sent is nested at most. Content that holds itself is deeper, and for others to refuse.
const maxNormalDepth = 1000

// isNormal tells whether v is made of the types that come from decoding JSON.
func isNormal(v any, depth int) bool {
	if depth > maxNormalDepth {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !isNormal(member, depth+1) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !isNormal(item, depth+1) {
				return false
			}
		}
		return true
	case nil, string, bool, int64, float64:
		return true
	default:
		return false
	}
}
