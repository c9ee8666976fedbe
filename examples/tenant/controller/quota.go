package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Quota keeps the ResourceQuota: the defaults, with what the tenant says itself on top.
func Quota() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildReconciler[*v1alpha1.Tenant, *corev1.ResourceQuota, *corev1.ResourceQuotaList]{
		Name: "Quota",
		DesiredChild: func(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.ResourceQuota, error) {
			if problems := checkQuota(tenant); len(problems) > 0 {
				return nil, invalid(tenant, problems...)
			}
			hard := defaultsStash.RetrieveOrDie(ctx).Quota.DeepCopy()
			maps.Copy(hard, tenant.Spec.Quota)
			if len(hard) == 0 {
				return nil, nil
			}
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "quota", Labels: labelsOf(tenant)},
				Spec:       corev1.ResourceQuotaSpec{Hard: hard},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ResourceQuota) {
			reconcilers.MergeLabels(current, desired)
			current.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: reflected[*corev1.ResourceQuota](v1alpha1.QuotaReady, "InForce", "Unlimited"),
	}
}

// checkQuota finds the quantities that are not possible, in the order of the resources.
func checkQuota(tenant *v1alpha1.Tenant) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("spec", "quota")
	for _, name := range slices.Sorted(maps.Keys(tenant.Spec.Quota)) {
		if quantity := tenant.Spec.Quota[name]; quantity.Sign() < 0 {
			key := path.Key(string(name))
			problems = append(problems, field.Invalid(key, quantity.String(), "must not be negative"))
		}
	}
	return problems
}
