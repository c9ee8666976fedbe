package controller

import "github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"

// TenantLabel is on all objects of a tenant, and has the tenant's name.
const TenantLabel = "tenancy.example.com/tenant"

func labelsOf(tenant *v1alpha1.Tenant) map[string]string {
	return map[string]string{TenantLabel: tenant.Name}
}
