package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/jsonmerge"
)

// decodeRequest is decode for the body of a request.
func (r *resource) decodeRequest(obj client.Object, w write) (client.Object, []metav1.ManagedFieldsEntry, error) {
	obj, err := asJSON(obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && w.strict {
		if err := r.checkFields(u.Object); err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return r.decode(obj)
}

// decode returns a copy of a sent object in the Go type of its kind, without managed fields, and those apart.
func (r *resource) decode(obj client.Object) (client.Object, []metav1.ManagedFieldsEntry, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content, err := jsonmerge.Normalize(u.Object)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		obj = &unstructured.Unstructured{Object: content}
	}
	sent := obj.GetManagedFields()
	next := obj
	if reflect.TypeOf(obj) != r.goType {
		converted, err := r.fromContent(obj)
		if err != nil {
			return nil, nil, err
		}
		next = converted
	}
	next = next.DeepCopyObject().(client.Object)
	truncateTimes(reflect.ValueOf(next))
	next.GetObjectKind().SetGroupVersionKind(r.gvk)
	next.SetManagedFields(nil)
	if u, ok := next.(*unstructured.Unstructured); ok {
		if err := coerceMetadata(u.Object); err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	next.SetNamespace(r.namespace(next.GetNamespace()))
	return next, sent, nil
}

// asJSON returns an object as it is after it was sent. What callers put into an unstructured object may have types, such
// as int, with which it cannot be copied.
func asJSON(obj client.Object) (client.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || isJSON(u.Object) {
		return obj, nil
	}
	document, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	sent := &unstructured.Unstructured{}
	return sent, utiljson.Unmarshal(document, &sent.Object)
}

// isJSON reports whether a value consists of the types that unstructured objects have.
func isJSON(value any) bool {
	switch value := value.(type) {
	case nil, string, bool, int64, float64:
		return true
	case map[string]any:
		for _, field := range value {
			if !isJSON(field) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(value, func(item any) bool { return !isJSON(item) })
	}
	return false
}

// coerceMetadata gives metadata the form that its Go type has: unknown fields and empty ones go.
func coerceMetadata(content map[string]any) error {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	known := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, known); err != nil {
		return err
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(known)
	if err != nil {
		return err
	}
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	content["metadata"] = metadata
	return nil
}

func (r *resource) fromContent(obj client.Object) (client.Object, error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return r.fromJSON(content)
}

// fromJSON returns the content in the Go type of the kind. They may share parts.
func (r *resource) fromJSON(content map[string]any) (client.Object, error) {
	obj := r.New()
	if u, ok := obj.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return obj, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			r.gvk.Kind, r.gvk.Version, r.gvk.Kind, err))
	}
	return obj, nil
}
