package controller_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var policy = rtesting.NewFixture(&networkingv1.NetworkPolicy{
	ObjectMeta: childMeta("acme", "isolation"),
	Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{
			{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}},
		},
	},
})

func TestIsolation(t *testing.T) {
	ready := isTrue(v1alpha1.NetworkReady, "Ready")
	applied := applies(policy)
	applied[0].ApplyConfiguration = client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1",
		"kind":       "NetworkPolicy",
		"metadata": map[string]any{
			"namespace": "acme", "name": "isolation", "uid": "child-uid",
			"labels": map[string]any{"tenancy.example.com/tenant": "acme"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "tenancy.example.com/v1alpha1", "kind": "Tenant", "name": "acme", "uid": "acme-uid",
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{}},
			"policyTypes": []any{"Ingress"},
			"ingress":     []any{map[string]any{"from": []any{map[string]any{"podSelector": map[string]any{}}}}},
		},
	}})
	applied[0].Group, applied[0].Kind, applied[0].Namespace, applied[0].Name = "networking.k8s.io", "NetworkPolicy", "acme", "isolation"
	open := tenant.With(isTrue(v1alpha1.NetworkReady, "NotDesired"))

	run(t, tests{
		"there is no policy yet: it is made, and left alone": {
			Resource:       tenant.With(isolated).Object(),
			GivenObjects:   []object{namespace},
			Until:          rtesting.Rest(),
			ExpectResource: tenant.With(isolated, ready).Object(),
			ExpectCreates:  []object{policy},
			ExpectEvents:   []rtesting.Event{normal("Created", `Created NetworkPolicy "isolation"`)},
		},
		"somebody opened it": {
			Resource: tenant.With(isolated).Object(),
			GivenObjects: []object{policy.With(exists, func(p *networkingv1.NetworkPolicy) {
				p.Spec.Ingress[0].From = nil
			})},
			ExpectResource: tenant.With(isolated, ready).Object(),
			ExpectApplies:  applied,
			ExpectEvents:   []rtesting.Event{normal("Updated", `Updated NetworkPolicy "isolation"`)},
		},
		"somebody exempted pods from it": {
			Resource: tenant.With(isolated).Object(),
			GivenObjects: []object{policy.With(exists, func(p *networkingv1.NetworkPolicy) {
				p.Spec.PodSelector.MatchLabels = map[string]string{"isolated": "yes"}
			})},
			ExpectResource: tenant.With(isolated, ready).Object(),
			ExpectApplies:  applied,
			ExpectEvents:   []rtesting.Event{normal("Updated", `Updated NetworkPolicy "isolation"`)},
		},
		"the network is to be open, and is": {
			Resource:       tenant.Object(),
			ExpectResource: open.Object(),
		},
		"the network is to be open": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{policy},
			ExpectResource: open.Object(),
			ExpectDeletes:  deletes(policy),
			ExpectEvents:   []rtesting.Event{normal("Deleted", `Deleted NetworkPolicy "isolation"`)},
		},
		"the network is to be open, and there is a policy of somebody else": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{policy.With(foreign[*networkingv1.NetworkPolicy])},
			ExpectResource: open.Object(),
		},
	}, controller.Isolation)
}
