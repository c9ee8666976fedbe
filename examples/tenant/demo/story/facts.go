package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
)

// check is what a fact does to find out whether it holds.
type check = func(ctx context.Context, w *World) error

// object is a pointer to a T that is an API object.
type object[T any] interface {
	*T
	client.Object
}

// get reads an object from the API server.
func get[T any, P object[T]](ctx context.Context, w *World, namespace, name string) (P, error) {
	obj := P(new(T))
	err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	return obj, err
}

func isThere[T any, P object[T]](namespace, name string) check {
	return func(ctx context.Context, w *World) error {
		_, err := get[T, P](ctx, w, namespace, name)
		return err
	}
}

func isGone[T any, P object[T]](namespace, name string) check {
	return func(ctx context.Context, w *World) error {
		obj, err := get[T, P](ctx, w, namespace, name)
		if err == nil {
			return fmt.Errorf("there is still the %T %s", obj, name)
		}
		return client.IgnoreNotFound(err)
	}
}

// allGone holds when there is no object that has the name of a tenant.
func allGone[T any, P object[T]]() check {
	return func(ctx context.Context, w *World) error {
		for _, name := range tenants {
			if err := isGone[T, P]("", name)(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}
}

// reports holds when the tenant's condition was observed at the current generation and is as given.
func reports(tenant, condition, status, reason string) check {
	return func(ctx context.Context, w *World) error {
		t, err := get[v1alpha1.Tenant](ctx, w, "", tenant)
		if err != nil {
			return err
		}
		c := t.Status.GetCondition(condition)
		switch {
		case c == nil:
			return fmt.Errorf("%s has no condition %s", tenant, condition)
		case t.Status.ObservedGeneration != t.Generation:
			return fmt.Errorf("%s is at generation %d, and observed at %d", tenant, t.Generation, t.Status.ObservedGeneration)
		case string(c.Status) != status || c.Reason != reason:
			return fmt.Errorf("%s of %s is %s, for the reason %s: %s", condition, tenant, c.Status, c.Reason, c.Message)
		}
		return nil
	}
}

func isReady(tenant string) check { return reports(tenant, "Ready", "True", "Onboarded") }

// quotaIs holds when the quota has these resources and quantities, in turns, and no others.
func quotaIs(tenant string, hard ...string) check {
	return func(ctx context.Context, w *World) error {
		quota, err := get[corev1.ResourceQuota](ctx, w, tenant, "quota")
		if err != nil {
			return err
		}
		same := len(quota.Spec.Hard) == len(hard)/2
		for i := 0; i < len(hard); i += 2 {
			quantity, ok := quota.Spec.Hard[corev1.ResourceName(hard[i])]
			same = same && ok && quantity.Cmp(resource.MustParse(hard[i+1])) == 0
		}
		if !same {
			return fmt.Errorf("the quota of %s is %v, not %s", tenant, quota.Spec.Hard, strings.Join(hard, " "))
		}
		return nil
	}
}

// partsOf returns, by their names, the objects that each tenant of the story has.
func partsOf(tenant string) []client.Object {
	parts := []client.Object{&corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &rbacv1.RoleBinding{}}
	for i, name := range []string{tenant, "quota", "limits", "members"} {
		parts[i].SetName(name)
		if i > 0 {
			parts[i].SetNamespace(tenant)
		}
	}
	return parts
}

func partKey(part client.Object) string {
	return fmt.Sprintf("%T %s/%s", part, part.GetNamespace(), part.GetName())
}

func eachHasItsParts(ctx context.Context, w *World) error {
	var errs []error
	for _, name := range tenants {
		for _, part := range partsOf(name) {
			errs = append(errs, w.client.Get(ctx, client.ObjectKeyFromObject(part), part))
		}
	}
	return errors.Join(errs...)
}

// partsAreUntouched holds when what the tenant has is as rememberParts has found it.
func partsAreUntouched(tenant string) check {
	return func(ctx context.Context, w *World) error {
		for _, part := range partsOf(tenant) {
			if err := isUntouched(ctx, w, w.before[partKey(part)]); err != nil {
				return err
			}
		}
		return nil
	}
}

// isUntouched holds when an object is as it was. A status does not count: other controllers may have reasons to write it.
func isUntouched(ctx context.Context, w *World, before client.Object) error {
	now := before.DeepCopyObject().(client.Object)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(before), now); err != nil {
		return err
	}
	same, err := sameEssence(before, now)
	if err == nil && !same {
		return fmt.Errorf("%s is not as it was", partKey(before))
	}
	return err
}

func areListed(ctx context.Context, w *World) error {
	for _, name := range tenants {
		tenant, err := get[v1alpha1.Tenant](ctx, w, "", name)
		if err != nil {
			return err
		}
		want := directory.Entry{Tenant: name, UID: string(tenant.UID), DisplayName: name, Owner: tenant.Spec.Owner}
		if entry, _ := w.directory.Lookup(name); entry != want {
			return fmt.Errorf("the entry of %s is %+v, not %+v", name, entry, want)
		}
	}
	return nil
}

func areNotListed(_ context.Context, w *World) error {
	for _, name := range tenants {
		if entry, ok := w.directory.Lookup(name); ok {
			return fmt.Errorf("there is still the entry %+v", entry)
		}
	}
	return nil
}

// operatorMay holds when the API server would, or would not, let the operator do something anywhere.
func operatorMay(want bool, verb, group, resource string) check {
	return func(ctx context.Context, w *World) error {
		allowed, err := w.operatorMay(ctx, verb, group, resource)
		if err == nil && allowed != want {
			return fmt.Errorf("whether the operator may %s %s is %t", verb, resource, allowed)
		}
		return err
	}
}

func (w *World) operatorMay(ctx context.Context, verb, group, resource string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               OperatorUser,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
	}}
	if err := w.client.Create(ctx, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
