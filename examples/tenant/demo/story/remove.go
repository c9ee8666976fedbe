package story

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
)

// removeWebhooks has the API server do without the operator's webhooks, which may not answer any more, or refuse what is to come. It
// takes a moment to notice.
func (w *World) removeWebhooks(ctx context.Context) error {
	var errs []error
	for _, obj := range w.created {
		switch obj.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			errs = append(errs, w.delete(ctx, obj))
		}
	}
	return errors.Join(errs...)
}

// removeTenants deletes the tenants while the operator can still clean up after them. One that cannot (it has failed, or
// was not started) does not keep them.
func (w *World) removeTenants(ctx context.Context) error {
	var tenants []client.Object
	for _, obj := range w.created {
		if _, ok := obj.(*v1alpha1.Tenant); ok {
			tenants = append(tenants, obj)
		}
	}
	var errs []error
	for _, tenant := range tenants {
		errs = append(errs, eventually(ctx, defaultPatience, func(ctx context.Context) error { return w.delete(ctx, tenant) }))
	}
	for _, tenant := range tenants {
		err := eventually(ctx, defaultPatience, func(ctx context.Context) error {
			if err := w.operator.failure(); err != nil {
				return w.dropFinalizers(ctx, tenant)
			}
			return w.gone(ctx, tenant)
		})
		if err != nil {
			errs = append(errs, err, w.dropFinalizers(ctx, tenant))
		}
	}
	for _, tenant := range tenants {
		errs = append(errs, eventually(ctx, defaultPatience, func(ctx context.Context) error { return w.namespaceGone(ctx, tenant.GetName()) }))
	}
	return errors.Join(errs...)
}

// dropFinalizers lets a tenant go that nobody cleans up after.
func (w *World) dropFinalizers(ctx context.Context, tenant client.Object) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(w.client.Patch(ctx, tenant, patch))
}

// namespaceGone returns an error as long as a tenant of that name has its namespace. A namespace of somebody else stays.
func (w *World) namespaceGone(ctx context.Context, tenant string) error {
	var namespace corev1.Namespace
	err := w.client.Get(ctx, client.ObjectKey{Name: tenant}, &namespace)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Labels[controller.TenantLabel] == tenant {
		return fmt.Errorf("there is still the namespace %s", tenant)
	}
	return nil
}

// removeCreated deletes what the story has made, the last first, and returns when it is gone.
func (w *World) removeCreated(ctx context.Context) error {
	var errs []error
	for _, obj := range slices.Backward(w.created) {
		err := w.delete(ctx, obj)
		if err == nil {
			err = eventually(ctx, defaultPatience, func(ctx context.Context) error { return w.gone(ctx, obj) })
		}
		errs = append(errs, err)
	}
	w.created = nil
	return errors.Join(errs...)
}

// delete deletes the very object that the story has made.
func (w *World) delete(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	err := w.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (w *World) gone(ctx context.Context, obj client.Object) error {
	current := obj.DeepCopyObject().(client.Object)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), current)
	if err == nil && current.GetUID() == obj.GetUID() {
		return fmt.Errorf("there is still the %T %s", obj, obj.GetName())
	}
	return client.IgnoreNotFound(err)
}
