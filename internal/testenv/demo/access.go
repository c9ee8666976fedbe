package demo

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Everywhere stands for all namespaces, and for resources without a namespace.
const Everywhere = ""

// May holds when the API server would let a user do something.
func (f *Fixture) May(user, verb, group, resource, namespace string) Condition {
	return f.access(true, user, verb, group, resource, namespace)
}

// MayNot holds when it would not.
func (f *Fixture) MayNot(user, verb, group, resource, namespace string) Condition {
	return f.access(false, user, verb, group, resource, namespace)
}

func (f *Fixture) access(want bool, user, verb, group, resource, namespace string) Condition {
	return func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Resource: resource, Namespace: namespace,
			},
		}}
		if err := f.Client.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != want {
			return fmt.Errorf("whether %s may %s %s is %t", user, verb, resource, review.Status.Allowed)
		}
		return nil
	}
}
