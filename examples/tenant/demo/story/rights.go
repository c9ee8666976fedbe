package story

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// everywhere is all namespaces, and what has none.
const everywhere = ""

// may holds when the API server would let a user do something.
func may(user, verb, group, resource, namespace string) check {
	return mayOrNot(true, user, verb, group, resource, namespace)
}

// mayNot holds when it would not.
func mayNot(user, verb, group, resource, namespace string) check {
	return mayOrNot(false, user, verb, group, resource, namespace)
}

func mayOrNot(want bool, user, verb, group, resource, namespace string) check {
	return func(ctx context.Context, w *World) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
		}}
		if err := w.client.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed != want {
			return fmt.Errorf("whether %s may %s %s is %t", user, verb, resource, review.Status.Allowed)
		}
		return nil
	}
}
