package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var limits = rtesting.NewFixture(&corev1.LimitRange{
	ObjectMeta: childMeta("acme", "limits"),
	Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type:    corev1.LimitTypeContainer,
		Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}}},
})

func TestLimits(t *testing.T) {
	inForce := isTrue(v1alpha1.LimitsReady, "Ready")

	run(t, tests{
		"they are made of the defaults": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			ExpectResource:     tenant.With(inForce).Object(),
			ExpectCreates:      []object{limits},
			ExpectEvents:       []rtesting.Event{normal("Created", `Created LimitRange "limits"`)},
		},
		"the defaults have changed": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed("limits.cpu", "1"),
			GivenObjects:       []object{limits.With(exists[*corev1.LimitRange])},
			ExpectResource:     tenant.With(inForce).Object(),
			ExpectApplies: applies(limits.With(func(l *corev1.LimitRange) {
				l.Spec.Limits[0].Default[corev1.ResourceCPU] = resource.MustParse("1")
			})),
			ExpectEvents: []rtesting.Event{normal("Updated", `Updated LimitRange "limits"`)},
		},
		"there are none": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed("limits.cpu", ""),
			GivenObjects:       []object{limits},
			ExpectResource:     tenant.With(isTrue(v1alpha1.LimitsReady, "NotDesired")).Object(),
			ExpectDeletes:      deletes(limits),
			ExpectEvents:       []rtesting.Event{normal("Deleted", `Deleted LimitRange "limits"`)},
		},
	}, controller.Limits)
}

// TestLimitsThatTheServerCompletes has a field filled in on the way, as the API server does with the requests of a
// LimitRange: that is no reason to write in the next reconcile.
func TestLimitsThatTheServerCompletes(t *testing.T) {
	run(t, tests{
		"created, and left alone": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			Until:              rtesting.Rest(),
			ExpectResource:     tenant.With(isTrue(v1alpha1.LimitsReady, "Ready")).Object(),
			ExpectCreates:      []object{limits},
			ExpectEvents:       []rtesting.Event{normal("Created", `Created LimitRange "limits"`)},
		},
	}, controller.Limits)
}
