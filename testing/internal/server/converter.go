package server

import (
	"reflect"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// typeConverter knows the schemas of the built-in kinds. Those of kinds that are never stored are not published, and
// deduced: that of a Scale, which has no lists, is the same then, and nobody reads who manages the fields of the
// others.
type typeConverter struct {
	managedfields.TypeConverter
	deduced managedfields.TypeConverter
	// schemas has the [typed.ParseableType] of each typedKind.
	schemas *sync.Map
}

type typedKind struct {
	goType reflect.Type
	gvk    schema.GroupVersionKind
}

func newTypeConverter() typeConverter {
	return typeConverter{
		clientgoapply.NewTypeConverter(published()), managedfields.NewDeducedTypeConverter(), &sync.Map{},
	}
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (c typeConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch obj.(type) {
	case *autoscalingv1.Scale, *corev1.Binding, *policyv1.Eviction,
		*authenticationv1.TokenRequest, *authenticationv1.SelfSubjectReview,
		*authorizationv1.SubjectAccessReview, *authorizationv1.LocalSubjectAccessReview,
		*authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectRulesReview:
		return c.deduced.ObjectToTyped(obj, opts...)
	}
	if len(opts) == 0 {
		return c.TypeConverter.ObjectToTyped(obj)
	}
	return c.unvalidated(obj, opts...)
}

// unvalidated does not validate an object that may have duplicates in its lists: one that has the Go type of its kind
// has all else that the schema says. To compare it with another returns the same errors. To validate it takes a tenth
// of a request.
func (c typeConverter) unvalidated(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	of := typedKind{reflect.TypeOf(obj), obj.GetObjectKind().GroupVersionKind()}
	if known, ok := c.schemas.Load(of); ok {
		like := known.(typed.ParseableType)
		reflected, err := value.NewValueReflect(obj)
		if err != nil {
			return nil, err
		}
		//lint:ignore SA1019 see above
		return typed.AsTypedUnvalidated(reflected, like.Schema, like.TypeRef), nil
	}
	valid, err := c.TypeConverter.ObjectToTyped(obj, opts...)
	if _, isUnstructured := obj.(runtime.Unstructured); err == nil && !isUnstructured {
		c.schemas.Store(of, typed.ParseableType{Schema: valid.Schema(), TypeRef: valid.TypeRef()})
	}
	return valid, err
}
