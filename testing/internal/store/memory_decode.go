package store

import (
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/jsonmerge"
)

// decode returns a copy of a sent object in the Go type of its kind, without managed fields, and those apart. Strict
// refuses fields that the kind does not have.
func (r *resource) decode(obj client.Object, strict bool) (client.Object, []metav1.ManagedFieldsEntry, error) {
	if err := checkRequest(sizeOf(reflect.ValueOf(obj))); err != nil {
		return nil, nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content, err := jsonmerge.Normalize(u.Object)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		obj = &unstructured.Unstructured{Object: content}
	}
	if strict {
		if err := r.checkFields(obj); err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if reflect.TypeOf(obj) != r.goType {
		content, err := contentOf(obj)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		if obj, err = r.fromJSON(content); err != nil {
			return nil, nil, err
		}
	}
	return r.received(obj)
}

// received is the end of decode, for an object that has the Go type of the kind.
func (r *resource) received(obj client.Object) (client.Object, []metav1.ManagedFieldsEntry, error) {
	next := obj.DeepCopyObject().(client.Object)
	if reflect.TypeOf(next) != r.goType {
		return nil, nil, errCopy(r.goType, next)
	}
	truncateTimes(reflect.ValueOf(next))
	next.GetObjectKind().SetGroupVersionKind(r.gvk)
	sent := next.GetManagedFields()
	next.SetManagedFields(nil)
	if u, ok := next.(*unstructured.Unstructured); ok {
		if err := coerceMetadata(u.Object); err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	next.SetNamespace(r.namespace(next.GetNamespace()))
	return next, sent, nil
}

// checkFields refuses fields that the kind does not have.
func (r *resource) checkFields(obj client.Object) error {
	if _, ok := obj.(*unstructured.Unstructured); !ok && reflect.TypeOf(obj) == r.goType {
		return nil // A Go type has no other fields.
	}
	content, err := contentOf(obj)
	if err != nil {
		return err
	}
	return r.CheckFields(content)
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

// fromJSON returns the content in the Go type of the kind. They may share parts.
func (r *resource) fromJSON(content map[string]any) (client.Object, error) {
	obj := r.New()
	if u, ok := obj.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return obj, nil
	}
	if err := fill(content, obj); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			r.gvk.Kind, r.gvk.Version, r.gvk.Kind, err))
	}
	return obj, nil
}

// fill sets obj to the content. The converter panics at unexported fields of a Go type, which encoding/json passes
// over.
func fill(content map[string]any, obj client.Object) (err error) {
	defer func() {
		if recover() == nil {
			return
		}
		var encoded []byte
		if encoded, err = json.Marshal(content); err == nil {
			err = json.Unmarshal(encoded, obj)
		}
	}()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
