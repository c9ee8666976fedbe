package reconcilers

import (
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// withheld replaces the values of a Secret in logs.
const withheld = "(withheld)"

// sanitize returns the part of obj that may be logged: the result of the author's function for a copy of obj, or obj
// itself if that function is nil. The author's function and the log get only the names of the keys of a Secret, in any
// Go representation of it (invariant L9).
func sanitize[T client.Object](obj T, author func(T) any) any {
	switch {
	case gotype.IsNil(obj):
		return nil
	case isSecret(obj):
		return sanitizeSecret(obj, author)
	case author == nil:
		return obj
	default:
		return author(copyOf(obj))
	}
}

func sanitizeSecret[T client.Object](obj T, author func(T) any) any {
	content := maskContent(obj)
	switch {
	case content == nil:
		return describeObject(obj)
	case author == nil:
		return content
	}
	var masked client.Object = &unstructured.Unstructured{Object: content}
	if secret, ok := any(obj).(*corev1.Secret); ok {
		masked = maskSecret(secret)
	}
	if typed, ok := masked.(T); ok {
		return author(typed)
	}
	// A duck type has no masked copy.
	return content
}

// maskSecret returns a copy of secret without its values.
func maskSecret(secret *corev1.Secret) *corev1.Secret {
	masked := secret.DeepCopy()
	for key := range masked.Data {
		masked.Data[key] = []byte(withheld)
	}
	for key := range masked.StringData {
		masked.StringData[key] = withheld
	}
	maskAnnotations(masked)
	return masked
}

// maskContent returns the content of a Secret without its values, or nil if the object cannot be converted.
func maskContent(obj client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
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
	maskAnnotations(secret)
	return secret.Object
}

// maskAnnotations hides the applied configuration that kubectl stores in an annotation.
func maskAnnotations(secret client.Object) {
	annotations := secret.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations[corev1.LastAppliedConfigAnnotation] = withheld
		secret.SetAnnotations(annotations)
	}
}

// maskPatch returns the operations that may be logged. For a Secret the values are hidden (invariant L9).
func maskPatch(operations []jsonpatch.Operation, req admission.Request, resource client.Object) []jsonpatch.Operation {
	if !isSecret(resource) && (req.Kind.Group != corev1.GroupName || req.Kind.Kind != "Secret") {
		return operations
	}
	masked := slices.Clone(operations)
	for i := range masked {
		if masked[i].Value != nil {
			masked[i].Value = withheld
		}
	}
	return masked
}

// isSecret reports whether obj is a Secret by its Go type or by its kind, because typed objects may have no kind.
func isSecret(obj client.Object) bool {
	if _, ok := obj.(*corev1.Secret); ok {
		return true
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	return gvk.Group == corev1.GroupName && gvk.Kind == "Secret"
}
