package server

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateReview requires of a review what says something about access: one kind of request, the one who makes it
// unless that is the client, and no metadata. It accepts all other reviews.
func validateReview(obj runtime.Object) field.ErrorList {
	switch review := obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		return append(validateAttributes(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes),
			validateReviewMetadata(review.ObjectMeta)...)
	case *authorizationv1.SubjectAccessReview:
		return append(validateAccess(&review.Spec), validateReviewMetadata(review.ObjectMeta)...)
	case *authorizationv1.LocalSubjectAccessReview:
		errs := append(validateAccess(&review.Spec), validateReviewMetadata(review.ObjectMeta)...)
		spec := field.NewPath("spec")
		if resource := review.Spec.ResourceAttributes; resource != nil && resource.Namespace != review.Namespace {
			errs = append(errs, field.Invalid(spec.Child("resourceAttributes", "namespace"), resource.Namespace,
				"must match metadata.namespace"))
		}
		if review.Spec.NonResourceAttributes != nil {
			errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), review.Spec.NonResourceAttributes,
				"disallowed in a namespace"))
		}
		return errs
	}
	return nil
}

// validateAccess requires a subject and a request.
func validateAccess(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), "",
			"at least one of user or group must be specified"))
	}
	return errs
}

// validateAttributes requires a request for a resource, or else for a URL.
func validateAttributes(
	resource *authorizationv1.ResourceAttributes, url *authorizationv1.NonResourceAttributes,
) field.ErrorList {
	if (resource == nil) != (url == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), url,
		"exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

// validateReviewMetadata refuses metadata other than what the request itself brings about: its namespace, and who
// manages the fields.
func validateReviewMetadata(metadata metav1.ObjectMeta) field.ErrorList {
	given := metadata
	given.Namespace, given.ManagedFields = "", nil
	if equality.Semantic.DeepEqual(metav1.ObjectMeta{}, given) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), metadata, "must be empty")}
}
