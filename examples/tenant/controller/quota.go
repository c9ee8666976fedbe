package controller

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Quota keeps the ResourceQuota: the defaults, with what the tenant says itself on top.
func Quota() node {
	return espalier.Owns("Quota", desiredQuota).Reports(v1alpha1.QuotaReady).Tune(
		func(child *reconcilers.ChildReconciler[*v1alpha1.Tenant, *corev1.ResourceQuota, client.ObjectList]) {
			// Earlier releases updated the quota, under the name of the program. What they wrote of it would stay.
			child.ChildObjectManager = &reconcilers.ApplyingObjectManager[*corev1.ResourceQuota]{
				FieldManager: "tenant-controller", TakeOverFrom: []string{"tenant"},
			}
		})
}

func desiredQuota(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.ResourceQuota, error) {
	if err := invalid(checkQuota(tenant)); err != nil {
		return nil, err
	}
	hard := defaultsStash.RetrieveOrDie(ctx).Quota.DeepCopy()
	maps.Copy(hard, tenant.Spec.Quota)
	if len(hard) == 0 {
		return nil, nil
	}
	return &corev1.ResourceQuota{
		ObjectMeta: partMeta(tenant, "quota"),
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}, nil
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
