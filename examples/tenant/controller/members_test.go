package controller_test

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// bound returns the binding of a member. The names are those that the operator has always given: another one would have
// it make all bindings anew.
func bound(name, kind, member, role string) rtesting.Fixture[*rbacv1.RoleBinding] {
	return rtesting.NewFixture(&rbacv1.RoleBinding{
		ObjectMeta: childMeta("acme", name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: member}},
	})
}

var (
	annEdits  = bound("member-61ee7e5ab2b69619", "User", "ann", "edit")
	annViews  = bound("member-60f24a0b71051318", "User", "ann", "view")
	teamEdits = bound("member-a7c426b0f0578762", "Group", "team", "edit")
)

// team has two members, of whom ann has the role given, and the others that of the tenant.
func team(role string) rtesting.Fixture[*v1alpha1.Tenant] {
	return tenant.With(func(t *v1alpha1.Tenant) {
		t.Spec.Role = "developer"
		t.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ann", Role: role}, {Kind: "Group", Name: "team"}}
	})
}

func annLeaves(t *v1alpha1.Tenant) { t.Spec.Members = t.Spec.Members[1:] }

func created(binding rtesting.Fixture[*rbacv1.RoleBinding]) rtesting.Event {
	return normal("Created", `Created RoleBinding "`+binding.Object().Name+`"`)
}

func updated(binding rtesting.Fixture[*rbacv1.RoleBinding]) rtesting.Event {
	return normal("Updated", `Updated RoleBinding "`+binding.Object().Name+`"`)
}

func deleted(binding rtesting.Fixture[*rbacv1.RoleBinding]) rtesting.Event {
	return normal("Deleted", `Deleted RoleBinding "`+binding.Object().Name+`"`)
}

func TestMembers(t *testing.T) {
	allBound := isTrue(v1alpha1.MembersReady, "Ready")

	run(t, tests{
		"they get the role of the tenant": {
			Resource:           team("").Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			ExpectResource:     team("").With(allBound).Object(),
			ExpectCreates:      []object{annEdits, teamEdits},
			ExpectEvents:       []rtesting.Event{created(annEdits), created(teamEdits)},
		},
		"they agree": {
			Resource:           team("").Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits, teamEdits},
			ExpectResource:     team("").With(allBound).Object(),
		},
		"one gets another role": {
			Resource:           team("guest").Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits, teamEdits},
			ExpectResource:     team("guest").With(allBound).Object(),
			ExpectCreates:      []object{annViews},
			ExpectDeletes:      deletes(annEdits),
			ExpectEvents:       []rtesting.Event{created(annViews), deleted(annEdits)},
		},
		"all have roles of their own": {
			Resource:           team("guest").With(annAlone, noRole).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace},
			ExpectResource:     team("guest").With(annAlone, noRole, allBound).Object(),
			ExpectCreates:      []object{annViews},
			ExpectEvents:       []rtesting.Event{created(annViews)},
		},
		"a role means something else now": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed("role.developer", "view"),
			GivenObjects:       []object{annEdits},
			ExpectResource:     team("").With(annAlone, allBound).Object(),
			ExpectCreates:      []object{annViews},
			ExpectDeletes:      deletes(annEdits),
			ExpectEvents:       []rtesting.Event{created(annViews), deleted(annEdits)},
		},
		"one leaves": {
			Resource:           team("").With(annLeaves).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits, teamEdits},
			ExpectResource:     team("").With(annLeaves, allBound).Object(),
			ExpectDeletes:      deletes(annEdits),
			ExpectEvents:       []rtesting.Event{deleted(annEdits)},
		},
		"there are none": {
			Resource:           tenant.Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits},
			ExpectResource:     tenant.With(isTrue(v1alpha1.MembersReady, "NotDesired")).Object(),
			ExpectDeletes:      deletes(annEdits),
			ExpectEvents:       []rtesting.Event{deleted(annEdits)},
		},
		"somebody let somebody else in": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits.With(exists, subject("mallory"))},
			ExpectResource:     team("").With(annAlone, allBound).Object(),
			ExpectApplies:      applies(annEdits),
			ExpectEvents:       []rtesting.Event{updated(annEdits)},
		},
		"somebody let nobody in": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits.With(exists, func(b *rbacv1.RoleBinding) { b.Subjects = nil })},
			ExpectResource:     team("").With(annAlone, allBound).Object(),
			ExpectApplies:      applies(annEdits),
			ExpectEvents:       []rtesting.Event{updated(annEdits)},
		},
		"somebody made a binding of that name with another role": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{namespace, annEdits.With(exists, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "admin" })},
			Until:              rtesting.Rest(),
			ExpectResource:     team("").With(annAlone, allBound).Object(),
			ExpectApplies:      applies(annEdits),
			ExpectDeletes:      deletes(annEdits),
			ExpectCreates:      []object{rtesting.WithOptions(annEdits, rtesting.WriteOptions{DryRun: ptr.To(true)}), annEdits},
			ExpectEvents: []rtesting.Event{
				warning("UpdateFailed", `Failed to update RoleBinding "`+annEdits.Object().Name+`": `+
					`RoleBinding.rbac.authorization.k8s.io "`+annEdits.Object().Name+`" is invalid: roleRef: Invalid value: `+
					`{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"}: cannot change roleRef`),
				normal("Recreating", `Recreating RoleBinding "`+annEdits.Object().Name+`", because roleRef cannot be changed`),
				deleted(annEdits), created(annEdits),
			},
		},
		"somebody took the label off": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits.With(exists, func(b *rbacv1.RoleBinding) { b.Labels = map[string]string{"theirs": "stays"} })},
			ExpectResource:     team("").With(annAlone, allBound).Object(),
			ExpectApplies:      applies(annEdits),
			ExpectEvents:       []rtesting.Event{updated(annEdits)},
		},
	}, controller.Members)
}

func TestMembersThatCannotHaveTheirRoles(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "", errors.New("not today"))

	run(t, tests{
		"there are no such roles: everybody keeps what he has": {
			Resource:           team("wizard").With(role("owner")).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annViews},
			ExpectResource: team("wizard").With(role("owner"), isFalse(v1alpha1.MembersReady, "Invalid",
				`[`+
					`spec.members[0].role: Unsupported value: "wizard": supported values: "developer", "guest", `+
					`spec.role: Unsupported value: "owner": supported values: "developer", "guest"]`)).Object(),
		},
		"one may not be given: the others get theirs": {
			Resource:           team("guest").Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits},
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "RoleBinding", rtesting.InduceFailureOpts{Name: annViews.Object().Name, Error: forbidden}),
			},
			ExpectResource: team("guest").With(isFalse(v1alpha1.MembersReady, "Forbidden", forbidden.Error())).Object(),
			ExpectCreates:  []object{annViews, teamEdits},
			ExpectDeletes:  deletes(annEdits),
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create RoleBinding "`+annViews.Object().Name+`": `+forbidden.Error()),
				deleted(annEdits),
				created(teamEdits),
			},
		},
		"somebody else has the name": {
			Resource:           team("").With(annAlone).Object(),
			GivenStashedValues: parsed(),
			GivenObjects:       []object{annEdits.With(foreign[*rbacv1.RoleBinding])},
			APIGivenObjects:    []object{annEdits.With(foreign[*rbacv1.RoleBinding])},
			ExpectResource: team("").With(annAlone, isFalse(v1alpha1.MembersReady, "AlreadyExists",
				`rolebindings.rbac.authorization.k8s.io "`+annEdits.Object().Name+`" already exists`)).Object(),
			ExpectCreates: []object{annEdits},
			ExpectTracks:  tracks(rbacv1.GroupName, "RoleBinding", "acme", annEdits.Object().Name),
			ExpectEvents: []rtesting.Event{warning("CreationFailed", `Failed to create RoleBinding "`+annEdits.Object().Name+
				`": rolebindings.rbac.authorization.k8s.io "`+annEdits.Object().Name+`" already exists`)},
		},
		"the bindings cannot be read": {
			Resource:           team("").Object(),
			GivenStashedValues: parsed(),
			WithReactors:       []rtesting.ReactionFunc{rtesting.InduceFailure("list", "RoleBindingList")},
			ShouldErr:          true,
		},
	}, controller.Members)
}

func annAlone(t *v1alpha1.Tenant) { t.Spec.Members = t.Spec.Members[:1] }

func noRole(t *v1alpha1.Tenant) { t.Spec.Role = "" }

func role(name string) func(*v1alpha1.Tenant) {
	return func(t *v1alpha1.Tenant) { t.Spec.Role = name }
}

func subject(name string) func(*rbacv1.RoleBinding) {
	return func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = name }
}
