package statusfield

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// conditionsIn returns the conditions of unstructured content. What is no condition is left out.
func conditionsIn(content map[string]any) []metav1.Condition {
	items, _, _ := unstructured.NestedSlice(content, "status", "conditions") // malformed content has none
	conditions := make([]metav1.Condition, 0, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		var condition metav1.Condition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition) == nil {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// setConditionsIn replaces the conditions of unstructured content. A status that is no map is replaced.
func setConditionsIn(content map[string]any, conditions []metav1.Condition) {
	items := make([]any, 0, len(conditions))
	for i := range conditions {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err == nil {
			items = append(items, fields)
		}
	}
	status, ok := content["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		content["status"] = status
	}
	status["conditions"] = items
}
