// Package duck gives typed access to parts of objects whose full type is not known.
//
// A duck type is a Go type that describes what several kinds have in common, such as the pod template of whatever has
// one. It is not registered in the scheme; each value says itself which kind it stands for:
//
//	workload := &WithPodTemplate{
//		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
//	}
//	err := duck.NewDuckAwareClientWrapper(c).Get(ctx, key, workload)
//
// A client that is wrapped by this package takes such values wherever it takes objects. They travel as unstructured
// objects and are converted back. A field that the Go type lacks is not seen, and, since ducks are written with patches,
// not lost either. All other objects pass through the wrapper untouched.
package duck

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// IsDuck tells whether obj is to be treated as a duck: its Go type is not registered in the scheme, and it says itself
// which group, version and kind it stands for. Unstructured objects and metav1.PartialObjectMetadata are no ducks:
// clients understand them as they are.
func IsDuck(obj runtime.Object, scheme *runtime.Scheme) bool {
	switch obj.(type) {
	case nil, runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return false
	}
	// Most objects carry no kind, which is quicker to find out than what the scheme knows.
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		return false
	}
	_, _, err := scheme.ObjectKinds(obj)
	return runtime.IsNotRegisteredError(err)
}

// Convert fills to with the content of from, by way of the unstructured form of both. Fields match by their JSON names:
// what to has no field for is left out, and what from lacks is zero in to afterwards. Either of them may be
// unstructured. Where from is, fields of to that are of an interface type share their value with it.
//
// Both must be non-nil pointers. On error, to may be half filled.
func Convert(from runtime.Object, to runtime.Object) error {
	u, isUnstructured := to.(runtime.Unstructured)
	if _, both := from.(runtime.Unstructured); both && isUnstructured {
		from = from.DeepCopyObject()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("unable to convert from object: %w", err)
	}
	if isUnstructured {
		u.SetUnstructuredContent(content)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, to); err != nil {
		return fmt.Errorf("unable to convert to object: %w", err)
	}
	return nil
}
