package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Limits keeps the LimitRange with which containers get limits that have none of their own.
func Limits() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildReconciler[*v1alpha1.Tenant, *corev1.LimitRange, *corev1.LimitRangeList]{
		Name: "Limits",
		DesiredChild: func(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.LimitRange, error) {
			limits := defaultsStash.RetrieveOrDie(ctx).Limits
			if len(limits) == 0 {
				return nil, nil
			}
			return &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "limits", Labels: labelsOf(tenant)},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
					{Type: corev1.LimitTypeContainer, Default: limits},
				}},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.LimitRange) {
			reconcilers.MergeLabels(current, desired)
			current.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: reflected[*corev1.LimitRange](v1alpha1.LimitsReady, "InForce", "Unlimited"),
	}
}
