package reconcilers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withheld stands in logs for the values of a Secret.
const withheld = "(withheld)"

// sanitize returns what may be logged of obj where the author gave no Sanitize function: obj itself, but of a Secret, in
// whatever representation, only the names of its keys (law L9).
func sanitize(obj client.Object) any {
	if isNil(obj) {
		return nil
	}
	if !isSecret(obj) {
		return obj
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return describeObject(obj)
	}
	secret := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	for _, member := range []string{"data", "stringData"} {
		values, ok := secret.Object[member].(map[string]any)
		if !ok {
			delete(secret.Object, member)
			continue
		}
		for key := range values {
			values[key] = withheld
		}
	}
	annotations := secret.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations[corev1.LastAppliedConfigAnnotation] = withheld
		secret.SetAnnotations(annotations)
	}
	return secret.Object
}

// isSecret goes by the kind, and by the Go type for objects that do not carry theirs.
func isSecret(obj client.Object) bool {
	if _, ok := obj.(*corev1.Secret); ok {
		return true
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk.Group == corev1.GroupName && gvk.Kind == "Secret"
}
