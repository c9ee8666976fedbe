package storytelling

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Everywhere is all namespaces, and what has none.
const Everywhere = ""

// May returns nil when whether the API server would let a user do something is as wanted.
func (c *Cluster) May(ctx context.Context, want bool, user, verb, group, resource, namespace string) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
	}}
	if err := c.Client.Create(ctx, review); err != nil {
		return err
	}
	if review.Status.Allowed != want {
		return fmt.Errorf("whether %s may %s %s is %t", user, verb, resource, review.Status.Allowed)
	}
	return nil
}
