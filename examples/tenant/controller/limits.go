package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// Limits keeps the LimitRange with which containers get limits that have none of their own.
func Limits() node {
	return espalier.Owns("Limits", desiredLimits).Reports(v1alpha1.LimitsReady)
}

func desiredLimits(ctx context.Context, tenant *v1alpha1.Tenant) (*corev1.LimitRange, error) {
	limits := defaultsStash.RetrieveOrDie(ctx).Limits
	if len(limits) == 0 {
		return nil, nil
	}
	return &corev1.LimitRange{
		ObjectMeta: partMeta(tenant, "limits"),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Default: limits},
		}},
	}, nil
}
