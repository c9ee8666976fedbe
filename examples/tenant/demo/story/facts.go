package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
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
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
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

// partsOf returns the objects that a tenant of the story has at least.
func partsOf(tenant string) []client.Object {
	parts := []client.Object{&corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}}
	for i, name := range []string{tenant, "quota", "limits"} {
		parts[i].SetName(name)
		if i > 0 {
			parts[i].SetNamespace(tenant)
		}
	}
	return parts
}

func eachHasItsParts(ctx context.Context, w *World) error {
	var errs []error
	for _, name := range tenants {
		for _, part := range partsOf(name) {
			errs = append(errs, w.Client.Get(ctx, client.ObjectKeyFromObject(part), part))
		}
	}
	return errors.Join(errs...)
}

// readParts returns the parts of a tenant, the bindings of its members among them.
func (w *World) readParts(ctx context.Context, tenant string) ([]client.Object, error) {
	parts := partsOf(tenant)
	for _, part := range parts {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return nil, err
		}
	}
	bindings, err := w.readBindings(ctx, tenant)
	for i := range bindings {
		parts = append(parts, &bindings[i])
	}
	return parts, err
}

// partsAreUntouched holds when what the tenant has is as rememberParts has found it, and no more.
func partsAreUntouched(tenant string) check {
	return func(ctx context.Context, w *World) error {
		for _, part := range w.parts[tenant] {
			if err := w.IsUntouched(ctx, part); err != nil {
				return err
			}
		}
		now, err := w.readParts(ctx, tenant)
		if err == nil && len(now) != len(w.parts[tenant]) {
			return fmt.Errorf("%s had %d parts, and now has %d", tenant, len(w.parts[tenant]), len(now))
		}
		return err
	}
}

// waits holds when a tenant that is being deleted is still there, although the operator has tried to let it go, and
// tried again.
func waits(name string) check {
	return func(ctx context.Context, w *World) error {
		if tries := w.operator.Reconciles()[name] - w.runs[name]; tries < 2 {
			return fmt.Errorf("the operator has tried %d times", tries)
		}
		tenant, err := get[v1alpha1.Tenant](ctx, w, "", name)
		if err == nil && tenant.DeletionTimestamp == nil {
			return fmt.Errorf("%s is not being deleted", name)
		}
		return err
	}
}

// may holds when the API server would let a user do something.
func may(user, verb, group, resource, namespace string) check {
	return func(ctx context.Context, w *World) error {
		return w.May(ctx, true, user, verb, group, resource, namespace)
	}
}

// mayNot holds when it would not.
func mayNot(user, verb, group, resource, namespace string) check {
	return func(ctx context.Context, w *World) error {
		return w.May(ctx, false, user, verb, group, resource, namespace)
	}
}
