package server

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// typeConverter knows the schemas of the built-in kinds. Those of kinds that are never stored are not published, and
// deduced: that of a Scale, which has no lists, is the same then, and nobody reads who manages the fields of the others.
type typeConverter struct {
	managedfields.TypeConverter
	deduced managedfields.TypeConverter
}

func newTypeConverter() typeConverter {
	return typeConverter{fieldmanager.BuiltIn(), managedfields.NewDeducedTypeConverter()}
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (c typeConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch obj.(type) {
	case *autoscalingv1.Scale, *corev1.Binding, *policyv1.Eviction, *authenticationv1.TokenRequest, *authenticationv1.SelfSubjectReview,
		*authorizationv1.SubjectAccessReview, *authorizationv1.LocalSubjectAccessReview,
		*authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectRulesReview:
		return c.deduced.ObjectToTyped(obj, opts...)
	}
	return c.TypeConverter.ObjectToTyped(obj, opts...)
}
