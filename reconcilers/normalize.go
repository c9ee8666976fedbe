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
	if !ok || u == nil || isNormal(u.Object) {
		return nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("the content of %s cannot be sent: %w", describeObject(obj), err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("the content of %s cannot be sent: %w", describeObject(obj), err)
	}
	u.Object = content
	return nil
}

// isNormal tells whether v is made of the types that come from decoding JSON.
func isNormal(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !isNormal(member) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !isNormal(item) {
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
