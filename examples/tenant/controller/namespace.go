package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// Namespace keeps the namespace of the tenant's name. A namespace of that name which is not the tenant's is left alone.
func Namespace(reserved []string) node {
	desired := func(_ context.Context, tenant *v1alpha1.Tenant) (*corev1.Namespace, error) {
		if err := invalid(checkName(tenant, reserved)); err != nil {
			return nil, err
		}
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.Name, Labels: labelsOf(tenant)}}, nil
	}
	return espalier.Owns("Namespace", desired).Reports(v1alpha1.NamespaceReady)
}

// checkName finds out whether there may be a tenant of that name.
func checkName(tenant *v1alpha1.Tenant, reserved []string) field.ErrorList {
	name := tenant.Name
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") || slices.Contains(reserved, name) {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, "is reserved")}
	}
	return nil
}
