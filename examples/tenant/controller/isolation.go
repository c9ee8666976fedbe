package controller

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// Isolation keeps the NetworkPolicy of an isolated tenant, which lets only pods of the namespace talk to its pods.
func Isolation() node {
	return espalier.Owns("Isolation", desiredIsolation).Reports(v1alpha1.NetworkReady)
}

func desiredIsolation(_ context.Context, tenant *v1alpha1.Tenant) (*networkingv1.NetworkPolicy, error) {
	if !tenant.Spec.Isolated {
		return nil, nil
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: partMeta(tenant, "isolation"),
		Spec: networkingv1.NetworkPolicySpec{
			// The map is there to be applied: a selector that somebody else sets must not stay.
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}},
			},
		},
	}, nil
}
