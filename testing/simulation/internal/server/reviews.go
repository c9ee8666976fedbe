package server

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// reviewREST says whether somebody may do something, see the Kubernetes API reference, SubjectAccessReview v1
// authorization.k8s.io. It stores nothing.
type reviewREST struct {
	authorizer authorizer.UnconditionalAuthorizer
	kind       string
	namespaced bool
	object     func() runtime.Object
}

var (
	_ rest.Creater              = reviewREST{}
	_ rest.Scoper               = reviewREST{}
	_ rest.SingularNameProvider = reviewREST{}
)

// newReviews returns the resources of the group authorization.k8s.io.
func newReviews(authorizer authorizer.UnconditionalAuthorizer) (schema.GroupVersion, resources) {
	return authorizationv1.SchemeGroupVersion, resources{
		"subjectaccessreviews": reviewREST{authorizer, "subjectaccessreview", false, func() runtime.Object {
			return &authorizationv1.SubjectAccessReview{}
		}},
		"selfsubjectaccessreviews": reviewREST{authorizer, "selfsubjectaccessreview", false, func() runtime.Object {
			return &authorizationv1.SelfSubjectAccessReview{}
		}},
		"localsubjectaccessreviews": reviewREST{authorizer, "localsubjectaccessreview", true, func() runtime.Object {
			return &authorizationv1.LocalSubjectAccessReview{}
		}},
	}
}

// New implements [rest.Storage].
func (r reviewREST) New() runtime.Object { return r.object() }

// Destroy implements [rest.Storage].
func (reviewREST) Destroy() {}

// NamespaceScoped implements [rest.Scoper].
func (r reviewREST) NamespaceScoped() bool { return r.namespaced }

// GetSingularName implements [rest.SingularNameProvider].
func (r reviewREST) GetSingularName() string { return r.kind }

// Create implements [rest.Creater].
func (r reviewREST) Create(
	ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	if err := validate(ctx, obj.DeepCopyObject()); err != nil {
		return nil, err
	}
	switch review := obj.(type) {
	case *authorizationv1.SubjectAccessReview:
		return review, r.decide(ctx, subjectOf(&review.Spec), review.Spec.ResourceAttributes,
			review.Spec.NonResourceAttributes, &review.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		attributes := review.Spec.ResourceAttributes
		if attributes == nil || attributes.Namespace != request.NamespaceValue(ctx) {
			return nil, apierrors.NewBadRequest("spec.resourceAttributes.namespace must match the namespace")
		}
		return review, r.decide(ctx, subjectOf(&review.Spec), attributes, nil, &review.Status)
	case *authorizationv1.SelfSubjectAccessReview:
		self, ok := request.UserFrom(ctx)
		if !ok {
			return nil, apierrors.NewBadRequest("no user present on request")
		}
		return review, r.decide(ctx, self, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes,
			&review.Status)
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("not a review: %T", obj))
}

func subjectOf(spec *authorizationv1.SubjectAccessReviewSpec) user.Info {
	extra := map[string][]string{}
	for key, values := range spec.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: extra}
}

// decide asks the authorizer about a request for a resource, or else for a URL.
func (r reviewREST) decide(
	ctx context.Context, who user.Info, resource *authorizationv1.ResourceAttributes,
	url *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus,
) error {
	record := authorizer.AttributesRecord{User: who}
	switch {
	case resource != nil:
		record.ResourceRequest, record.Verb, record.Namespace = true, resource.Verb, resource.Namespace
		record.APIGroup, record.APIVersion = resource.Group, resource.Version
		record.Resource, record.Subresource, record.Name = resource.Resource, resource.Subresource, resource.Name
	case url != nil:
		record.Verb, record.Path = url.Verb, url.Path
	default:
		return apierrors.NewBadRequest("exactly one of nonResourceAttributes or resourceAttributes must be specified")
	}
	decision, reason, err := r.authorizer.Authorize(ctx, record)
	*status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return nil
}
