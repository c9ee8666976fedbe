package testing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
)

// watchedType is a type as a cache tells types apart.
type watchedType struct {
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

func watchedTypeOf(obj client.Object, scheme *runtime.Scheme) (watchedType, error) {
	kind, err := kindOf(obj, scheme)
	if err != nil {
		return watchedType{}, err
	}
	w := watchedType{kind: kind}
	switch obj.(type) {
	case runtime.Unstructured:
		w.form = unstructuredForm
	case *metav1.PartialObjectMetadata:
		w.form = metadataForm
	default:
		if duck.IsDuck(obj, scheme) {
			w.form = unstructuredForm
		}
	}
	return w, nil
}

// String returns the type as people name it.
func (w watchedType) String() string {
	version, kind := w.kind.ToAPIVersionAndKind()
	return version + " " + kind + string(w.form)
}

// object returns an object of the type, as a table would have it.
func (w watchedType) object(scheme *runtime.Scheme) client.Object {
	version, kind := w.kind.ToAPIVersionAndKind()
	switch w.form {
	case unstructuredForm:
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	case metadataForm:
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
	}
	if made, err := scheme.New(w.kind); err == nil {
		if obj, ok := made.(client.Object); ok {
			return obj
		}
	}
	return nil
}

// of returns obj, which is of the kind, as an informer of the type has it.
func (w watchedType) of(obj client.Object, scheme *runtime.Scheme) (client.Object, error) {
	u := &unstructured.Unstructured{}
	if err := duck.Convert(obj, u); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(w.kind)
	switch w.form {
	case unstructuredForm:
		return u, nil
	case metadataForm:
		partial := meta.AsPartialObjectMetadata(u)
		partial.SetGroupVersionKind(w.kind)
		return partial, nil
	}
	to := w.object(scheme)
	if to == nil {
		return nil, fmt.Errorf("the scheme has no %s", w)
	}
	if err := duck.Convert(u, to); err != nil {
		return nil, err
	}
	// What is decoded into a type does not carry its kind.
	to.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return to, nil
}
