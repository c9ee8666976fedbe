package sharder

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keyOf returns the key of an object by its role. It is empty if the object is not to be assigned, as one of a
// controlled resource without a controller.
func keyOf(obj *metav1.PartialObjectMetadata, as role) (string, error) {
	if as == controlledRole {
		return controllerKey(obj)
	}
	kind := obj.GroupVersionKind()
	switch {
	case kind.Empty():
		return "", errors.New("the object has no apiVersion and no kind")
	case obj.Name != "":
		return key(kind.Group, kind.Kind, obj.Namespace, obj.Name), nil
	case obj.GenerateName != "":
		return "", errors.New("generateName is not supported for a main resource")
	}
	return "", errors.New("the object has no name")
}

// controllerKey returns the key of an object's controller. The namespace is that of the object, also if the controller
// is cluster-scoped and has none.
func controllerKey(obj *metav1.PartialObjectMetadata) (string, error) {
	controller := metav1.GetControllerOf(obj)
	if controller == nil {
		return "", nil
	}
	if controller.APIVersion == "" || controller.Kind == "" || controller.Name == "" {
		return "", fmt.Errorf("the reference to the controller lacks apiVersion, kind or name: %+v", *controller)
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	if err != nil {
		return "", fmt.Errorf("the reference to the controller: %w", err)
	}
	return key(version.Group, controller.Kind, obj.Namespace, controller.Name), nil
}

func key(group, kind, namespace, name string) string {
	return strings.Join([]string{group, kind, namespace, name}, "/")
}
