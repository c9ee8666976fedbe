package story

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
)

// The members that each tenant of the story begins with.
func annOf(tenant string) []string {
	return []string{rbacv1.UserKind, "ann@" + tenant + ".example.com"}
}

func developersOf(tenant string) []string { return []string{rbacv1.GroupKind, tenant + "-developers"} }

// as gives a member a role.
func as(member []string, role string) []string { return append(slices.Clone(member), role) }

// readBindings returns the bindings of a tenant's members.
func (w *World) readBindings(ctx context.Context, tenant string) ([]rbacv1.RoleBinding, error) {
	var bindings rbacv1.RoleBindingList
	err := w.Client.List(ctx, &bindings, client.InNamespace(tenant), client.MatchingLabels{controller.TenantLabel: tenant})
	return bindings.Items, err
}

// bindingsAre holds when the members of a tenant may do just that: each is the kind, the name and the ClusterRole.
func bindingsAre(tenant string, members ...[]string) check {
	return func(ctx context.Context, w *World) error {
		bindings, err := w.readBindings(ctx, tenant)
		if err != nil {
			return err
		}
		var got, want []string
		for _, binding := range bindings {
			for _, subject := range binding.Subjects {
				got = append(got, strings.Join([]string{subject.Kind, subject.Name, binding.RoleRef.Name}, " "))
			}
		}
		for _, member := range members {
			want = append(want, strings.Join(member, " "))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the bindings of %s are %q, not %q", tenant, got, want)
		}
		return nil
	}
}

func eachHasItsBindings(ctx context.Context, w *World) error {
	for _, name := range tenants {
		if err := bindingsAre(name, as(annOf(name), "edit"), as(developersOf(name), "edit"))(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// bindingIsTheSame holds when there is still the binding of a member that rememberParts has found.
func bindingIsTheSame(tenant string, member []string) check {
	return func(ctx context.Context, w *World) error {
		for _, part := range w.parts[tenant] {
			binding, ok := part.(*rbacv1.RoleBinding)
			if ok && binding.Subjects[0].Kind == member[0] && binding.Subjects[0].Name == member[1] {
				return w.IsUntouched(ctx, binding)
			}
		}
		return fmt.Errorf("%s had no binding before", member[1])
	}
}

// directoryKnows holds when the directory has just these members of a tenant.
func directoryKnows(tenant string, members ...[]string) check {
	return func(_ context.Context, w *World) error {
		var want []directory.Member
		for _, member := range members {
			want = append(want, directory.Member{Kind: member[0], Name: member[1]})
		}
		_, got, _ := w.directory.Lookup(tenant)
		if len(got) != len(want) || slices.ContainsFunc(want, func(m directory.Member) bool { return !slices.Contains(got, m) }) {
			return fmt.Errorf("the directory knows %v as the members of %s, not %v", got, tenant, want)
		}
		return nil
	}
}

func areListed(ctx context.Context, w *World) error {
	for _, name := range tenants {
		if err := isListed(name)(ctx, w); err != nil {
			return err
		}
		if err := directoryKnows(name, annOf(name), developersOf(name))(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// isListed holds when the directory says about a tenant what the tenant says itself.
func isListed(name string) check {
	return func(ctx context.Context, w *World) error {
		tenant, err := get[v1alpha1.Tenant](ctx, w, "", name)
		if err != nil {
			return err
		}
		want := directory.Entry{Tenant: name, UID: string(tenant.UID), DisplayName: name, Owner: tenant.Spec.Owner}
		if entry, _, _ := w.directory.Lookup(name); entry != want {
			return fmt.Errorf("the entry of %s is %+v, not %+v", name, entry, want)
		}
		return nil
	}
}

func areNotListed(_ context.Context, w *World) error {
	for _, name := range tenants {
		if entry, _, ok := w.directory.Lookup(name); ok {
			return fmt.Errorf("there is still the entry %+v", entry)
		}
	}
	return nil
}
