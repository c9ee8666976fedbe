// Package duck gives typed access to parts of objects whose full type is not known.
//
// A duck type is a Go type with the fields that several kinds have in common, such as a pod template. It is not
// registered in the scheme. Each value names its kind itself:
//
//	workload := &WithPodTemplate{
//		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
//	}
//	err := duck.NewDuckAwareClientWrapper(c).Get(ctx, key, workload)
//
// A client that is wrapped by this package accepts such values in place of objects. It sends and receives them as
// unstructured objects and converts them. A field that the Go type lacks is not visible. It is not lost either, because
// ducks are written with patches. All other objects pass through the wrapper unchanged.
package duck

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// IsDuck reports whether obj is a duck: its Go type is not registered in the scheme, and it names its group, version
// and kind itself. Unstructured objects and metav1.PartialObjectMetadata are no ducks, because clients support them as
// they are.
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

// Convert fills to with the content of from, through the unstructured form of both. Fields match by their JSON names.
// Fields that to lacks are left out, and fields that from lacks are zero in to. Either of them may be unstructured. If
// from is, then fields of to that have an interface type share their value with it.
//
// Both must be non-nil pointers. After an error, to may be partly filled.
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
