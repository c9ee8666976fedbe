package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// TenantLabel is on all objects of a tenant, and has the tenant's name.
const TenantLabel = "tenancy.example.com/tenant"

func labelsOf(tenant *v1alpha1.Tenant) map[string]string {
	return map[string]string{TenantLabel: tenant.Name}
}

// mergeLabels puts the labels of desired on current, and leaves those alone that others have put there.
func mergeLabels(current, desired client.Object) {
	current.SetLabels(reconcilers.MergeMaps(current.GetLabels(), desired.GetLabels()))
}
