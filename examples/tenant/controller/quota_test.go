package controller_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var quota = rtesting.NewFixture(&corev1.ResourceQuota{
	ObjectMeta: childMeta("acme", "quota"),
	Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourcePods:   resource.MustParse("20"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
	}},
})

func TestQuota(t *testing.T) {
	inForce := isTrue(v1alpha1.QuotaReady, "Ready")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "quota", errors.New("not today"))

	run(t, tests{
		"it is made of the defaults": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			ExpectResource:     tenant.With(inForce).Object(),
			ExpectCreates:      []object{quota},
			ExpectEvents:       []rtesting.Event{normal("Created", `Created ResourceQuota "quota"`)},
		},
		"what the tenant asks for goes first": {
			Resource:           tenant.With(asksForPods("50")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			ExpectResource:     tenant.With(asksForPods("50"), inForce).Object(),
			ExpectCreates:      []object{quota.With(allowsPods("50"))},
			ExpectEvents:       []rtesting.Event{normal("Created", `Created ResourceQuota "quota"`)},
		},
		"it agrees": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{quota},
			ExpectResource:     tenant.With(inForce).Object(),
		},
		"somebody edited it: what is added stays": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects: []object{quota.With(exists, allowsPods("9999"), func(q *corev1.ResourceQuota) {
				q.Labels = map[string]string{"theirs": "stays"}
				q.Spec.Hard[corev1.ResourceSecrets] = resource.MustParse("0")
			})},
			ExpectResource: tenant.With(inForce).Object(),
			ExpectApplies:  applies(quota),
			ExpectEvents:   []rtesting.Event{normal("Updated", `Updated ResourceQuota "quota"`)},
		},
		"the tenant asks for less than nothing": {
			Resource:           tenant.With(asksForPods("-1")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{quota.With(allowsPods("7"))},
			ExpectResource: tenant.With(asksForPods("-1"), isFalse(v1alpha1.QuotaReady, "Invalid",
				`spec.quota[pods]: Invalid value: "-1": must not be negative`)).Object(),
		},
		"nobody limits anything": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed("quota.pods", "", "quota.memory", ""),
			GivenObjects:       []object{quota},
			ExpectResource:     tenant.With(isTrue(v1alpha1.QuotaReady, "NotDesired")).Object(),
			ExpectDeletes:      deletes(quota),
			ExpectEvents:       []rtesting.Event{normal("Deleted", `Deleted ResourceQuota "quota"`)},
		},
		"somebody else has the name": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{quota.With(foreign[*corev1.ResourceQuota])},
			APIGivenObjects:    []object{quota.With(foreign[*corev1.ResourceQuota])},
			ExpectResource: tenant.With(isFalse(v1alpha1.QuotaReady, "AlreadyExists",
				`resourcequotas "quota" already exists`)).Object(),
			ExpectCreates: []object{quota},
			ExpectTracks:  tracks("", "ResourceQuota", "acme", "quota"),
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create ResourceQuota "quota": resourcequotas "quota" already exists`),
			},
		},
		"it is refused": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ResourceQuota", rtesting.InduceFailureOpts{Error: forbidden}),
			},
			ExpectResource: tenant.With(isFalse(v1alpha1.QuotaReady, "Forbidden", forbidden.Error())).Object(),
			ExpectCreates:  []object{quota},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create ResourceQuota "quota": `+forbidden.Error()),
			},
		},
		"it cannot be made now": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			WithReactors:       []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ResourceQuota")},
			ShouldErr:          true,
			ExpectCreates:      []object{quota},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create ResourceQuota "quota": inducing failure for create ResourceQuota`),
			},
		},
	}, controller.Quota)
}

func asksForPods(quantity string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) {
		t.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse(quantity)}
	}
}

func allowsPods(quantity string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourcePods] = resource.MustParse(quantity) }
}

// foreign makes an object one that no tenant owns.
func foreign[T metav1.Object](obj T) {
	obj.SetOwnerReferences(nil)
	obj.SetLabels(nil)
}
