package edit

import (
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels adds labels to an object or a pod template. A label that it has already gets the value.
func Labels(object metav1.Object, labels map[string]string) error {
	return editLabels(object, func(old map[string]string) map[string]string { return merge(old, labels) })
}

// RemoveLabel makes an object or a pod template have no labels of some keys.
func RemoveLabel(object metav1.Object, keys ...string) error {
	return editLabels(object, func(old map[string]string) map[string]string { return without(old, keys) })
}

// Annotations adds annotations to an object or a pod template. An annotation that it has already gets the value.
func Annotations(object metav1.Object, annotations map[string]string) error {
	return editAnnotations(object, func(old map[string]string) map[string]string { return merge(old, annotations) })
}

// RemoveAnnotation makes an object or a pod template have no annotations of some keys.
func RemoveAnnotation(object metav1.Object, keys ...string) error {
	return editAnnotations(object, func(old map[string]string) map[string]string { return without(old, keys) })
}

func editLabels(object metav1.Object, edit func(map[string]string) map[string]string) error {
	if err := checkMetadata(object, "labels"); err != nil {
		return err
	}
	object.SetLabels(edit(object.GetLabels()))
	return nil
}

func editAnnotations(object metav1.Object, edit func(map[string]string) map[string]string) error {
	if err := checkMetadata(object, "annotations"); err != nil {
		return err
	}
	object.SetAnnotations(edit(object.GetAnnotations()))
	return nil
}

// checkMetadata returns an error for an object whose metadata cannot be edited. What an unstructured object has there
// is otherwise lost if it is not text.
func checkMetadata(object metav1.Object, field string) error {
	if gotype.IsNil(object) {
		return missing("object")
	}
	content, ok := object.(runtime.Unstructured)
	if !ok {
		return nil
	}
	// The error has the value.
	if _, _, err := unstructured.NestedStringMap(content.UnstructuredContent(), "metadata", field); err != nil {
		return fmt.Errorf("the field metadata.%s has something else than texts", field)
	}
	return nil
}
