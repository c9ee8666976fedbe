package tenant_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

const day = 24 * time.Hour

// drifts change something of a tenant that is the operator's business, a different thing each day.
func drifts(someone *simulation.Actor, tenant string) []func() {
	quota, limits := quota(tenant), limits(tenant)
	namespace := &corev1.Namespace{ObjectMeta: stories.Named("", tenant)}
	return []func(){
		func() {
			someone.Update(quota, func() { quota.Spec.Hard[corev1.ResourcePods] = resource.MustParse("9") })
		},
		func() { someone.Delete(quota) },
		func() { someone.Update(limits, func() { limits.Spec.Limits = limits.Spec.Limits[:0] }) },
		func() { someone.Delete(limits) },
		func() { someone.Update(namespace, func() { delete(namespace.Labels, controller.TenantLabel) }) },
		func() {
			bindings := &rbacv1.RoleBindingList{}
			someone.List(bindings, client.InNamespace(tenant))
			someone.Delete(&bindings.Items[0])
		},
	}
}

var days = flag.Int("stories.days", 8, "how long the story of days is; 365 is a year")

// TestDays has somebody change something each day, and a user as well, while the certificate of the webhooks is renewed
// once a week. In the end the tenant is as on the first day. A year takes four minutes.
func TestDays(t *testing.T) {
	simulation.Run(t, cluster(t), func(w *simulation.World) {
		someone := w.As("someone")
		tenant := newTenant("acme")
		w.Create(tenant)
		w.Rest()
		isReady(w, tenant)
		first := &stories.End{Kinds: kinds}
		first.Compare(w)
		changes := drifts(someone, tenant.Name)
		for today := range *days {
			if today%7 == 6 {
				renew(w, strconv.Itoa(today))
			}
			changes[today%len(changes)]()
			w.Pass(day / 2)
			w.Update(tenant, func() { tenant.Spec.DisplayName = fmt.Sprint("Acme ", today) })
			w.Pass(day / 2)
			isReady(w, tenant)
		}
		w.Update(tenant, func() { tenant.Spec.DisplayName = tenant.Name })
		w.Pass(day)
		first.Compare(w)
		w.Idle(day)
	})
}

// renew renews the certificate of the webhooks.
func renew(w *simulation.World, name string) {
	w.Helper()
	secret := certificate()
	bundle := stories.Authority(w, name)
	w.Update(secret, func() { secret.Data["ca.crt"] = bundle })
	w.Pass(time.Minute)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	configuration.Name = installation
	w.Get(configuration)
	if string(configuration.Webhooks[0].ClientConfig.CABundle) != string(bundle) {
		w.Errorf("the webhooks have not got the certificate %s", name)
	}
}

// TestSameRequests tells a story twice. The operator writes the same in the same order (L8). Two tenants, or a tenant
// and the list of tenants, are reconciled beside each other, so it is a story of one.
func TestSameRequests(t *testing.T) {
	var first []string
	for range 3 {
		simulation.Run(t, cluster(t), func(w *simulation.World) {
			tenant := newTenant("acme")
			w.Create(tenant)
			w.Rest()
			w.Update(tenant, func() { tenant.Spec.Isolated, tenant.Spec.Members = true, nil })
			w.Rest()
			w.Delete(tenant)
			w.Rest()
			var writes []string
			for _, line := range w.Writes() {
				if line != "update ConfigMap "+platform+"/"+controller.RegistryName {
					writes = append(writes, line)
				}
			}
			if first == nil {
				first = writes
			}
			if fmt.Sprint(first) != fmt.Sprint(writes) || len(first) < 10 {
				w.Errorf("the operator writes\n%q, and then\n%q", first, writes)
			}
		})
	}
}

// TestLinear counts what the operator writes for tenants: for ten times as many it is no more than ten times as much
// (L12), but for the list of all tenants.
func TestLinear(t *testing.T) {
	writes := func(n int) int {
		made := 0
		simulation.Run(t, cluster(t), func(w *simulation.World) {
			for i := range n {
				w.Create(newTenant(fmt.Sprintf("tenant-%d", i)))
			}
			w.Rest()
			for _, line := range w.Writes() {
				if line != "update ConfigMap "+platform+"/"+controller.RegistryName {
					made++
				}
			}
			w.Idle(12 * time.Hour) // with a look at all of them
		})
		return made
	}
	few, many := writes(5), writes(50)
	t.Logf("%d writes for 5, %d for 50", few, many)
	if few == 0 || many > 10*few {
		t.Errorf("%d writes for 5, %d for 50", few, many)
	}
}
