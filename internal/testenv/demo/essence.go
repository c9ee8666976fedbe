package storytelling

import (
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// essence returns what somebody means an object to be, and its identity: all but the status and the bookkeeping of the
// API server.
func essence(obj client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(runtime.Unstructured); ok {
		// That was not copied.
		content = runtime.DeepCopyJSON(content)
	}
	delete(content, "status")
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content, nil
}

func sameEssence(a, b client.Object) (bool, error) {
	first, err := essence(a)
	if err != nil {
		return false, err
	}
	second, err := essence(b)
	return equality.Semantic.DeepEqual(first, second), err
}

// IsGone tells whether an object cannot be read because it, or its type, is not there.
func IsGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
