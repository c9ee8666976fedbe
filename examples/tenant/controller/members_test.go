package controller_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var binding = rtesting.NewFixture(&rbacv1.RoleBinding{
	ObjectMeta: childMeta("acme", "members"),
	RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	Subjects: []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"},
		{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team"},
	},
})

func TestMembers(t *testing.T) {
	team := tenant.With(func(t *v1alpha1.Tenant) {
		t.Spec.Role = "developer"
		t.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ann"}, {Kind: "Group", Name: "team"}}
	})
	role := func(name string) func(*v1alpha1.Tenant) {
		return func(t *v1alpha1.Tenant) { t.Spec.Role = name }
	}
	bound := isTrue(v1alpha1.MembersReady, "Bound")

	run(t, tests{
		"they are bound": {
			Resource:           team.Object(),
			GivenStashedValues: parsed(),
			ExpectResource:     team.With(bound).Object(),
			ExpectCreates:      []object{binding},
			ExpectEvents:       []rtesting.Event{normal("Created", `Created RoleBinding "members"`)},
		},
		"one has left": {
			Resource:           team.With(func(t *v1alpha1.Tenant) { t.Spec.Members = t.Spec.Members[:1] }).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{binding},
			ExpectResource:     team.With(func(t *v1alpha1.Tenant) { t.Spec.Members = t.Spec.Members[:1] }, bound).Object(),
			ExpectUpdates:      []object{binding.With(func(b *rbacv1.RoleBinding) { b.Subjects = b.Subjects[:1] })},
			ExpectEvents:       []rtesting.Event{normal("Updated", `Updated RoleBinding "members"`)},
		},
		"there are none": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{binding},
			ExpectResource:     tenant.With(isTrue(v1alpha1.MembersReady, "NoMembers")).Object(),
			ExpectDeletes:      deletes(binding),
			ExpectEvents:       []rtesting.Event{normal("Deleted", `Deleted RoleBinding "members"`)},
		},
		"they get another role": {
			Resource:           team.With(role("guest")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{binding},
			ExpectResource: team.With(role("guest"), isUnknown(v1alpha1.MembersReady, "RoleChanging",
				"the members lose their old role before they get the new one")).Object(),
			ExpectDeletes: deletes(binding),
			ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted RoleBinding "members"`)},
			AdditionalReconciles: []rtesting.SubReconcilerTestCase[*v1alpha1.Tenant]{{
				Name:               "when the old binding is gone",
				Resource:           team.With(role("guest")).Object(),
				GivenStashedValues: parsed(),
				ExpectResource:     team.With(role("guest"), bound).Object(),
				ExpectCreates:      []object{binding.With(func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" })},
				ExpectEvents:       []rtesting.Event{normal("Created", `Created RoleBinding "members"`)},
			}},
		},
		"the role does not exist": {
			Resource:           team.With(role("wizard")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{binding},
			ExpectResource: team.With(role("wizard"), isFalse(v1alpha1.MembersReady, "Invalid",
				`Tenant.tenancy.example.com "acme" is invalid: spec.role: Unsupported value: "wizard": supported values: "developer", "guest"`)).Object(),
		},
		"somebody else has the name": {
			Resource:           team.With(role("guest")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{binding.With(foreign[*rbacv1.RoleBinding])},
			APIGivenObjects:    []object{binding.With(foreign[*rbacv1.RoleBinding])},
			ExpectResource: team.With(role("guest"), isFalse(v1alpha1.MembersReady, "NotOurs",
				`rolebindings.rbac.authorization.k8s.io "members" already exists and does not belong to this tenant`)).Object(),
			ExpectCreates: []object{binding.With(func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" })},
			ExpectTracks:  tracks(rbacv1.GroupName, "RoleBinding", "acme", "members"),
			ExpectEvents: []rtesting.Event{warning("CreationFailed",
				`Failed to create RoleBinding "members": rolebindings.rbac.authorization.k8s.io "members" already exists`)},
		},
		"the binding cannot be read": {
			Resource:           team.Object(),
			GivenStashedValues: parsed(),
			WithReactors:       []rtesting.ReactionFunc{rtesting.InduceFailure("get", "RoleBinding")},
			ShouldErr:          true,
		},
	}, controller.Members)
}
