package story

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// removeWebhooks has the API server do without the operator's webhooks, which may not answer any more, or refuse what
// is to come. It takes a moment to notice.
func (w *World) removeWebhooks(ctx context.Context) error {
	var errs []error
	for _, obj := range w.Created() {
		switch obj.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
			errs = append(errs, w.Delete(ctx, obj))
		}
	}
	return errors.Join(errs...)
}

// removeTenants deletes the tenants while the operator can still clean up after them. One that cannot (it has failed,
// or was not started) does not keep them.
func (w *World) removeTenants(ctx context.Context) error {
	var tenants []client.Object
	for _, obj := range w.Created() {
		if _, ok := obj.(*v1alpha1.Tenant); ok {
			tenants = append(tenants, obj)
		}
	}
	var errs []error
	for _, tenant := range tenants {
		errs = append(errs, storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error { return w.Delete(ctx, tenant) }))
	}
	for _, tenant := range tenants {
		err := storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error {
			if err := w.operator.Failure(); err != nil {
				return w.DropFinalizers(ctx, tenant)
			}
			return w.Gone(ctx, tenant)
		})
		if err != nil {
			errs = append(errs, err, w.DropFinalizers(ctx, tenant))
		}
	}
	for _, tenant := range tenants {
		errs = append(errs, storytelling.Eventually(ctx, storytelling.Patience, func(ctx context.Context) error { return w.namespaceGone(ctx, tenant.GetName()) }))
	}
	return errors.Join(errs...)
}

// namespaceGone returns an error as long as a tenant of that name has its namespace. A namespace of somebody else
// stays.
func (w *World) namespaceGone(ctx context.Context, tenant string) error {
	var namespace corev1.Namespace
	err := w.Client.Get(ctx, client.ObjectKey{Name: tenant}, &namespace)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if namespace.Labels[controller.TenantLabel] == tenant {
		return fmt.Errorf("there is still the namespace %s", tenant)
	}
	return nil
}
