package controller

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Isolation keeps the NetworkPolicy that lets only pods of the namespace talk to its pods.
func Isolation() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	desired := func(_ context.Context, tenant *v1alpha1.Tenant) (*networkingv1.NetworkPolicy, error) {
		samePods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
		return &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "isolation", Labels: labelsOf(tenant)},
			Spec: networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{
					{From: []networkingv1.NetworkPolicyPeer{samePods}},
				},
			},
		}, nil
	}
	return networkPolicy("Isolation", desired)
}

// NoIsolation deletes what Isolation has made.
func NoIsolation() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return networkPolicy("NoIsolation", func(context.Context, *v1alpha1.Tenant) (*networkingv1.NetworkPolicy, error) {
		return nil, nil
	})
}

func networkPolicy(
	name string, desired func(context.Context, *v1alpha1.Tenant) (*networkingv1.NetworkPolicy, error),
) reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildReconciler[*v1alpha1.Tenant, *networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]{
		Name:         name,
		DesiredChild: desired,
		MergeBeforeUpdate: func(current, desired *networkingv1.NetworkPolicy) {
			reconcilers.MergeLabels(current, desired)
			current.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: reflected[*networkingv1.NetworkPolicy](v1alpha1.NetworkReady, "Isolated", "Open"),
	}
}
