package fakemanager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Type is a type of objects as a cache distinguishes them: by kind and form.
type Type struct {
	kind schema.GroupVersionKind
	form form
}

// form is how objects of a kind are held.
type form string

const (
	typedForm        form = ""
	unstructuredForm form = " (unstructured)"
	metadataForm     form = " (metadata)"
)

// TypeOf returns the type of obj.
func TypeOf(obj client.Object, scheme *runtime.Scheme) (Type, error) {
	kind, err := objects.KindOf(obj, scheme)
	if err != nil {
		return Type{}, err
	}
	t := Type{kind: kind}
	switch obj.(type) {
	case runtime.Unstructured:
		t.form = unstructuredForm
	case *metav1.PartialObjectMetadata:
		t.form = metadataForm
	default:
		if duck.IsDuck(obj, scheme) {
			t.form = unstructuredForm
		}
	}
	return t, nil
}

// String returns the type as failure messages name it.
func (t Type) String() string {
	version, kind := t.kind.ToAPIVersionAndKind()
	return version + " " + kind + string(t.form)
}

// Object returns an empty object of the type, as a table would have it; nil if the scheme has no such type.
func (t Type) Object(scheme *runtime.Scheme) client.Object {
	version, kind := t.kind.ToAPIVersionAndKind()
	switch t.form {
	case unstructuredForm:
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	case metadataForm:
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
	}
	if made, err := scheme.New(t.kind); err == nil {
		if obj, ok := made.(client.Object); ok {
			return obj
		}
	}
	return nil
}

// convert returns obj, which is of the kind, as an informer of the type has it.
func (t Type) convert(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	u := &unstructured.Unstructured{}
	if err := duck.Convert(obj, u); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(t.kind)
	switch t.form {
	case unstructuredForm:
		return u, nil
	case metadataForm:
		partial := meta.AsPartialObjectMetadata(u)
		partial.SetGroupVersionKind(t.kind)
		return partial, nil
	}
	to := t.Object(scheme)
	if to == nil {
		return nil, fmt.Errorf("the scheme has no %s", t)
	}
	if err := duck.Convert(u, to); err != nil {
		return nil, err
	}
	// An object that is decoded into a Go type has no kind set.
	to.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return to, nil
}
