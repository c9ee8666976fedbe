package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builtInKind returns how the server has a built-in kind. Definitions are not among them.
func builtInKind(k Kind) (kind, bool) {
	b, ok := kindsByName()[k.GroupKind]
	return b, ok
}

var kindsByName = sync.OnceValue(func() map[schema.GroupKind]kind {
	byName := map[schema.GroupKind]kind{}
	for _, k := range kinds() {
		byName[k.Kind] = k
	}
	byName[eventKind] = byName[schema.GroupKind{Kind: "Event"}]
	return byName
})

// contentOf returns a copy of the JSON form of an object.
func contentOf(obj client.Object) (map[string]any, error) {
	var source any = obj
	if u, ok := obj.(runtime.Unstructured); ok {
		source = u.UnstructuredContent()
	}
	encoded, err := json.Marshal(source)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(encoded, &content); err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	return content, nil
}

// coerceMetadata gives metadata the form that its Go type has: unknown fields and empty ones go.
func coerceMetadata(content map[string]any) error {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	known := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, known); err != nil {
		return fmt.Errorf("read the metadata: %w", err)
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(known)
	if err != nil {
		return fmt.Errorf("read the metadata: %w", err)
	}
	maps.DeleteFunc(metadata, func(_ string, value any) bool { return value == nil })
	content["metadata"] = metadata
	return nil
}

// showCustomResource decodes a custom resource that was given, without the defaults and the pruning of its definition.
func showCustomResource(value []byte, into runtime.Object) error {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a custom resource cannot be read as %T", into)
	}
	version := u.GroupVersionKind()
	content := map[string]any{}
	if err := utiljson.Unmarshal(value, &content); err != nil {
		return err
	}
	u.Object = content
	u.SetGroupVersionKind(version)
	return nil
}

// showDefinition decodes a definition that was given, without the defaults that its codec sets.
func showDefinition(value []byte, into runtime.Object) error {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(value, d); err != nil {
		return err
	}
	internal, ok := into.(*apiextensions.CustomResourceDefinition)
	if !ok {
		return fmt.Errorf("a CustomResourceDefinition cannot be read as %T", into)
	}
	*internal = apiextensions.CustomResourceDefinition{}
	return apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		d, internal, nil)
}

// definitionOf returns a copy of a definition that has any Go type.
func definitionOf(obj client.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	if d, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
		return d.DeepCopy(), nil
	}
	encoded, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(encoded, d); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	return d, nil
}
