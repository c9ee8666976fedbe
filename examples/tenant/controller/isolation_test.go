package controller_test

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	isolated := tenant.With(isTrue(v1alpha1.NetworkReady, "Isolated"))

	run(t, tests{
		"there is no policy yet": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{namespace},
			ExpectResource: isolated.Object(),
			ExpectCreates:  []object{policy},
			ExpectEvents:   []rtesting.Event{normal("Created", `Created NetworkPolicy "isolation"`)},
		},
		"somebody opened it": {
			Resource: tenant.Object(),
			GivenObjects: []object{policy.With(func(p *networkingv1.NetworkPolicy) {
				p.Spec.Ingress[0].From = nil
			})},
			ExpectResource: isolated.Object(),
			ExpectUpdates:  []object{policy},
			ExpectEvents:   []rtesting.Event{normal("Updated", `Updated NetworkPolicy "isolation"`)},
		},
		"it agrees": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{policy},
			ExpectResource: isolated.Object(),
		},
	}, controller.Isolation)
}

func TestNoIsolation(t *testing.T) {
	open := tenant.With(isTrue(v1alpha1.NetworkReady, "Open"))

	run(t, tests{
		"there is no policy": {
			Resource:       tenant.Object(),
			ExpectResource: open.Object(),
		},
		"there is one": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{policy},
			ExpectResource: open.Object(),
			ExpectDeletes:  deletes(policy),
			ExpectEvents:   []rtesting.Event{normal("Deleted", `Deleted NetworkPolicy "isolation"`)},
		},
		"there is one of somebody else": {
			Resource:       tenant.Object(),
			GivenObjects:   []object{policy.With(foreign[*networkingv1.NetworkPolicy])},
			ExpectResource: open.Object(),
		},
	}, controller.NoIsolation)
}
