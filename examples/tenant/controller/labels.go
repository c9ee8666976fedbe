package controller

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// TenantLabel is on all objects of a tenant, and has the tenant's name.
const TenantLabel = "tenancy.example.com/tenant"

func labelsOf(tenant *v1alpha1.Tenant) map[string]string {
	return map[string]string{TenantLabel: tenant.Name}
}

// mergeLabels puts the labels of desired on current, and leaves those alone that others have put there.
func mergeLabels(current, desired client.Object) {
	labels := maps.Clone(current.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	current.SetLabels(labels)
}
