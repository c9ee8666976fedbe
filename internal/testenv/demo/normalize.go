package demo

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// normalized returns the desired state of an object, and its identity: all but the status and the bookkeeping of the
// API server.
func normalized(obj client.Object) (map[string]any, error) {
	// A copy, since the content of an unstructured object is returned as it is.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content, nil
}
