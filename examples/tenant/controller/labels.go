package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// TenantLabel is on all objects of a tenant, and has the tenant's name.
const TenantLabel = "tenancy.example.com/tenant"

func labelsOf(tenant *v1alpha1.Tenant) map[string]string {
	return map[string]string{TenantLabel: tenant.Name}
}

// partMeta is the metadata of an object in the namespace of the tenant.
func partMeta(tenant *v1alpha1.Tenant, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: tenant.Name, Name: name, Labels: labelsOf(tenant)}
}
