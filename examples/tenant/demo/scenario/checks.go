package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// The objects of the scenario. They have a name, and nothing else.
func tenantOf(name string) *v1alpha1.Tenant       { return demo.Named[v1alpha1.Tenant]("", name) }
func namespaceOf(tenant string) *corev1.Namespace { return demo.Named[corev1.Namespace]("", tenant) }

func quotaOf(tenant string) *corev1.ResourceQuota {
	return demo.Named[corev1.ResourceQuota](tenant, "quota")
}

func limitsOf(tenant string) *corev1.LimitRange {
	return demo.Named[corev1.LimitRange](tenant, "limits")
}

func isolationOf(tenant string) client.Object {
	return demo.Named[networkingv1.NetworkPolicy](tenant, "isolation")
}

// of applies a function to both tenants.
func of[T client.Object](object func(tenant string) T) []client.Object {
	return []client.Object{object(acme), object(globex)}
}

// eachOf holds when a condition does for both tenants.
func eachOf(condition func(tenant string) demo.Condition) demo.Condition {
	return demo.All(condition(acme), condition(globex))
}

// reports holds when the tenant's condition was observed at the current generation and is as given.
func (s *scenario) reports(name, condition, status, reason string) demo.Condition {
	return func(ctx context.Context) error {
		tenant := tenantOf(name)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		c := tenant.Status.GetCondition(condition)
		switch {
		case c == nil:
			return fmt.Errorf("%s has no condition %s", name, condition)
		case tenant.Status.ObservedGeneration != tenant.Generation:
			return fmt.Errorf("%s is at generation %d, and observed at %d",
				name, tenant.Generation, tenant.Status.ObservedGeneration)
		case string(c.Status) != status || c.Reason != reason:
			return fmt.Errorf("%s of %s is %s, for the reason %s: %s", condition, name, c.Status, c.Reason, c.Message)
		}
		return nil
	}
}

func (s *scenario) isReady(tenant string) demo.Condition {
	return s.reports(tenant, "Ready", "True", "Ready")
}

// quotaIs holds when the quota is for so many pods and so much CPU, and for nothing else.
func (s *scenario) quotaIs(tenant, pods, cpu string) demo.Condition {
	return func(ctx context.Context) error {
		quota := quotaOf(tenant)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		want := corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse(pods), corev1.ResourceRequestsCPU: resource.MustParse(cpu),
		}
		if !equality.Semantic.DeepEqual(quota.Spec.Hard, want) {
			return fmt.Errorf("the quota of %s is %v, not %v", tenant, quota.Spec.Hard, want)
		}
		return nil
	}
}

// readBindings returns the bindings of a tenant's members.
func (s *scenario) readBindings(ctx context.Context, tenant string) ([]client.Object, error) {
	var list rbacv1.RoleBindingList
	err := s.Client.List(ctx, &list, client.InNamespace(tenant), client.MatchingLabels{controller.TenantLabel: tenant})
	var bindings []client.Object
	for i := range list.Items {
		bindings = append(bindings, &list.Items[i])
	}
	return bindings, err
}

// rememberParts remembers all that a tenant has.
func (s *scenario) rememberParts(ctx context.Context, tenant string) error {
	bindings, err := s.readBindings(ctx, tenant)
	parts := append(bindings, namespaceOf(tenant), quotaOf(tenant), limitsOf(tenant))
	return errors.Join(err, s.Remember(ctx, parts...))
}

// bindingsAre holds when the members of a tenant may do just that: each is the kind, the name and the ClusterRole.
func (s *scenario) bindingsAre(tenant string, members ...string) demo.Condition {
	return func(ctx context.Context) error {
		bindings, err := s.readBindings(ctx, tenant)
		if err != nil {
			return err
		}
		var got []string
		for _, object := range bindings {
			binding := object.(*rbacv1.RoleBinding)
			for _, subject := range binding.Subjects {
				got = append(got, subject.Kind+" "+subject.Name+" "+binding.RoleRef.Name)
			}
		}
		return equal("the bindings of "+tenant, got, members)
	}
}

// isListed holds when the directory says about a tenant what the tenant says itself, and has these members.
func (s *scenario) isListed(name string, members ...string) demo.Condition {
	return func(ctx context.Context) error {
		tenant := tenantOf(name)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant); err != nil {
			return err
		}
		want := directory.Entry{Tenant: name, UID: string(tenant.UID), DisplayName: name, Owner: tenant.Spec.Owner}
		entry, listed, _ := s.directory.Lookup(name)
		if entry != want {
			return fmt.Errorf("the entry of %s is %+v, not %+v", name, entry, want)
		}
		var got []string
		for _, member := range listed {
			got = append(got, member.Kind+" "+member.Name)
		}
		return equal("the members of "+name+" in the directory", got, members)
	}
}

// haveBindings holds when the members that the tenant begins with may do what its role says.
func (s *scenario) haveBindings(tenant string) demo.Condition {
	return s.bindingsAre(tenant, ann(tenant)+" edit", developers(tenant)+" edit")
}

// areListed holds when the directory lists the tenant with these members.
func (s *scenario) areListed(tenant string) demo.Condition {
	return s.isListed(tenant, ann(tenant), developers(tenant))
}

func (s *scenario) isNotListed(tenant string) demo.Condition {
	return func(context.Context) error {
		if entry, _, listed := s.directory.Lookup(tenant); listed {
			return fmt.Errorf("there is still the entry %+v", entry)
		}
		return nil
	}
}

// registryLists holds when the list of all tenants has just these: "NAME" however ready it is, "NAME True" if it is
// Ready.
func (s *scenario) registryLists(tenants ...string) demo.Condition {
	return func(ctx context.Context) error {
		var registry corev1.ConfigMap
		key := client.ObjectKey{Namespace: platform, Name: controller.RegistryName}
		if err := s.Client.Get(ctx, key, &registry); err != nil {
			return err
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(registry.Data)) {
			var item struct{ Ready string }
			if err := json.Unmarshal([]byte(registry.Data[name]), &item); err != nil {
				return fmt.Errorf("what the list says of %s cannot be read: %w", name, err)
			}
			if !slices.Contains(tenants, name) {
				name += " " + item.Ready
			}
			got = append(got, name)
		}
		return equal("the list of all tenants", got, tenants)
	}
}

// equal returns an error unless both have the same texts, in any order.
func equal(what string, got, want []string) error {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: there is %q, not %q", what, strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// waits holds when a tenant that is being deleted is still there, although the operator has tried to let it go, and
// tried again.
func (s *scenario) waits(name string) demo.Condition {
	return func(ctx context.Context) error {
		if tries := s.Operator.Reconciles()[name] - s.reconciles[name]; tries < 2 {
			return fmt.Errorf("the operator has tried %d times", tries)
		}
		tenant := tenantOf(name)
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant)
		if err == nil && tenant.DeletionTimestamp == nil {
			return fmt.Errorf("%s is not being deleted", name)
		}
		return err
	}
}

// watchesHub holds when the operator watches the defaults on the hub.
func (s *scenario) watchesHub(context.Context) error {
	if s.hubRequests.Watches() == 0 {
		return errors.New("the operator watches nothing on the hub")
	}
	return nil
}
