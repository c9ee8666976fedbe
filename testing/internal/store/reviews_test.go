package store_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// TestReviews asks who may do what, and who somebody is. Everything is allowed, and nothing is stored.
func TestReviews(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{})
	revision := s.Revision()
	list := &authorizationv1.ResourceAttributes{Namespace: "ns", Verb: "list", Resource: "secrets"}
	self := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: list},
	}
	must(t, c.Create(t.Context(), self))
	jane := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: list},
	}
	must(t, c.Create(t.Context(), jane))
	local := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: jane.Spec}
	must(t, c.Create(t.Context(), local))
	if !self.Status.Allowed || !jane.Status.Allowed || !local.Status.Allowed {
		t.Errorf("the reviews are %+v, %+v and %+v, want all allowed", self.Status, jane.Status, local.Status)
	}
	token := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "jane"}}
	must(t, c.Create(t.Context(), token))
	if !token.Status.Authenticated || token.Status.User.Username != "jane" {
		t.Errorf("the token is %+v, want that of jane", token.Status)
	}
	reason(t, c.Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{}), metav1.StatusReasonInvalid,
		"exactly one of nonResourceAttributes or resourceAttributes must be specified")
	reason(t, c.Create(t.Context(), &authorizationv1.SubjectAccessReview{}), metav1.StatusReasonInvalid, "spec.user")
	reason(t, c.Create(t.Context(), &authenticationv1.TokenReview{}), metav1.StatusReasonBadRequest, "token is required")
	if s.Revision() != revision {
		t.Errorf("the reviews brought the store to revision %d, want %d", s.Revision(), revision)
	}
}
