package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"
)

var registry = rtesting.NewFixture(&corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "tenants"},
	Data: map[string]string{
		"acme":   `{"displayName":"acme","owner":"ann@example.com","ready":"True"}`,
		"globex": `{"displayName":"Globex Inc.","owner":"ann@example.com","ready":"Unknown"}`,
	},
})

func TestRegistry(t *testing.T) {
	globex := tenant.With(func(t *v1alpha1.Tenant) {
		t.Name, t.UID = "globex", "globex-uid"
		t.Spec.DisplayName = "Globex Inc."
	})
	list := func(data map[string]string) func(*corev1.ConfigMap) {
		return func(c *corev1.ConfigMap) { c.Data = data }
	}
	platform := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
	event := func(reason, message string) rtesting.Event { return rtesting.Normal(registry, reason, message) }
	tracked := []rtesting.TrackRequest{{
		Tracker:          types.NamespacedName{Namespace: "platform", Name: "tenants"},
		TrackedReference: tracker.Reference{APIGroup: v1alpha1.GroupVersion.Group, Kind: "Tenant", Selector: labels.Everything()},
	}}

	table := rtesting.RootTests{
		"there are no tenants": {
			GivenObjects:  []object{platform},
			ExpectCreates: []object{registry.With(list(nil))},
			ExpectEvents:  []rtesting.Event{event("Created", `Created ConfigMap "tenants"`)},
		},
		"there are some": {
			GivenObjects:  []object{platform, onboarded, globex},
			ExpectCreates: []object{registry},
			ExpectEvents:  []rtesting.Event{event("Created", `Created ConfigMap "tenants"`)},
		},
		"they are listed": {
			GivenObjects: []object{onboarded, globex, registry},
		},
		"there are none any more": {
			GivenObjects:  []object{registry},
			ExpectUpdates: []object{registry.With(list(nil))},
			ExpectEvents:  []rtesting.Event{event("Updated", `Updated ConfigMap "tenants"`)},
		},
		"one is being deleted": {
			GivenObjects:  []object{onboarded, globex.With(terminating), registry},
			ExpectUpdates: []object{registry.With(func(c *corev1.ConfigMap) { delete(c.Data, "globex") })},
			ExpectEvents:  []rtesting.Event{event("Updated", `Updated ConfigMap "tenants"`)},
		},
		"somebody wrote into the list": {
			GivenObjects: []object{onboarded, globex, registry.With(func(c *corev1.ConfigMap) {
				c.Data["initech"] = "me too"
				c.Labels = map[string]string{"theirs": "stays"}
			})},
			ExpectUpdates: []object{registry.With(func(c *corev1.ConfigMap) { c.Labels = map[string]string{"theirs": "stays"} })},
			ExpectEvents:  []rtesting.Event{event("Updated", `Updated ConfigMap "tenants"`)},
		},
		"they cannot be listed": {
			GivenObjects: []object{registry},
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "TenantList")},
			ShouldErr:    true,
		},
	}
	for name, tc := range table {
		tc.Request.NamespacedName = types.NamespacedName{Namespace: "platform", Name: "tenants"}
		tc.ExpectTracks = tracked
		table[name] = tc
	}
	table.RunRoot(t, scheme, func(c reconcilers.Config) reconcile.Reconciler {
		return controller.NewRegistry(c, controller.Options{RegistryNamespace: "platform"})
	})
}
