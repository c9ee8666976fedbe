package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// reviewREST says who somebody is and whether somebody may do something, see the Kubernetes API reference,
// SubjectAccessReview v1 authorization.k8s.io and TokenReview v1 authentication.k8s.io. It stores nothing.
type reviewREST struct {
	deciders
	kind       string
	namespaced bool
	object     func() runtime.Object
}

// deciders decide who somebody is, and who may do what.
type deciders struct {
	credentials Credentials
	authorizer  authorizer.UnconditionalAuthorizer
}

var (
	_ rest.Creater              = reviewREST{}
	_ rest.Scoper               = reviewREST{}
	_ rest.SingularNameProvider = reviewREST{}
)

// newReviews returns the resources of the groups authorization.k8s.io and authentication.k8s.io.
func newReviews(decides deciders) map[schema.GroupVersion]resources {
	return map[schema.GroupVersion]resources{
		authenticationv1.SchemeGroupVersion: {
			"selfsubjectreviews": reviewREST{decides, "selfsubjectreview", false, func() runtime.Object {
				return &authenticationv1.SelfSubjectReview{}
			}},
			"tokenreviews": reviewREST{decides, "tokenreview", false, func() runtime.Object {
				return &authenticationv1.TokenReview{}
			}},
		},
		authorizationv1.SchemeGroupVersion: newAccessReviews(decides),
	}
}

// newAccessReviews returns the resources that say what somebody may do.
func newAccessReviews(decides deciders) resources {
	return resources{
		"selfsubjectrulesreviews": reviewREST{decides, "selfsubjectrulesreview", false, func() runtime.Object {
			return &authorizationv1.SelfSubjectRulesReview{}
		}},
		"subjectaccessreviews": reviewREST{decides, "subjectaccessreview", false, func() runtime.Object {
			return &authorizationv1.SubjectAccessReview{}
		}},
		"selfsubjectaccessreviews": reviewREST{decides, "selfsubjectaccessreview", false, func() runtime.Object {
			return &authorizationv1.SelfSubjectAccessReview{}
		}},
		"localsubjectaccessreviews": reviewREST{decides, "localsubjectaccessreview", true, func() runtime.Object {
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
	if errs := validateReview(obj); len(errs) > 0 {
		kind := schema.GroupKind{Group: authorizationv1.GroupName, Kind: obj.GetObjectKind().GroupVersionKind().Kind}
		return nil, apierrors.NewInvalid(kind, "", errs)
	}
	if err := validate(ctx, obj.DeepCopyObject()); err != nil {
		return nil, err
	}
	switch review := obj.(type) {
	case *authenticationv1.TokenReview:
		return review, r.identify(review)
	case *authorizationv1.SubjectAccessReview:
		return review, r.decide(ctx, subjectOf(&review.Spec), review.Spec.ResourceAttributes,
			review.Spec.NonResourceAttributes, &review.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		return review, r.decide(ctx, subjectOf(&review.Spec), review.Spec.ResourceAttributes, nil, &review.Status)
	}
	self, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	switch review := obj.(type) {
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = userInfo(self)
		return review, nil
	case *authorizationv1.SelfSubjectRulesReview:
		if review.Spec.Namespace == "" {
			return nil, apierrors.NewBadRequest("no namespace on request")
		}
		review.Status = r.rules(self, review.Spec.Namespace)
		return review, nil
	case *authorizationv1.SelfSubjectAccessReview:
		return review, r.decide(ctx, self, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes,
			&review.Status)
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("not a review: %T", obj))
}

// identify says whose a token is.
func (r reviewREST) identify(review *authenticationv1.TokenReview) error {
	if review.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	asked := &http.Request{Header: http.Header{"Authorization": {"Bearer " + review.Spec.Token}}}
	review.Status = authenticationv1.TokenReviewStatus{}
	switch who, ok, err := r.credentials.AuthenticateRequest(asked); {
	case err != nil:
		review.Status.Error = err.Error()
	case ok:
		review.Status.Authenticated, review.Status.User = true, userInfo(who.User)
		review.Status.Audiences = review.Spec.Audiences
	}
	return nil
}

// userInfo returns what a client may know of itself.
func userInfo(self user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: self.GetName(), UID: self.GetUID(), Groups: self.GetGroups()}
	for key, values := range self.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// rules returns what a user may do in a namespace.
func (r reviewREST) rules(self user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus {
	all := []string{"*"}
	rules := []rbacv1.PolicyRule{
		{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all},
	}
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	if roles, ok := r.authorizer.(*roleAuthorizer); ok && !isMaster(self) {
		var problems []string
		rules, problems = roles.rulesOf(self, namespace)
		status.EvaluationError, status.Incomplete = strings.Join(problems, "; "), len(problems) > 0
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
				ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs,
			})
		}
	}
	return status
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
	if resource != nil {
		record.ResourceRequest, record.Verb, record.Namespace = true, resource.Verb, resource.Namespace
		record.APIGroup, record.APIVersion = resource.Group, resource.Version
		record.Resource, record.Subresource, record.Name = resource.Resource, resource.Subresource, resource.Name
	} else {
		record.Verb, record.Path = url.Verb, url.Path
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
