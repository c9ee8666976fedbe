package shop_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// change has the operator create, change and delete objects of all its kinds, for one shop.
func change(w *simulation.World) {
	shop := newShop("corner")
	w.Create(newSettings(), shop)
	w.Rest()
	is(w, shop, "True")
	drifted := &corev1.Service{ObjectMeta: stories.Named(namespace, "corner")}
	w.As("someone").Update(drifted, func() { drifted.Spec.Selector = nil })
	w.Update(shop, func() {
		shop.Spec.Image, shop.Spec.Host = "shop:2", "else.example.com"
		shop.Spec.Workers[0].Schedule = "0 0 2 2 *"
	})
	w.Rest()
	w.Update(shop, func() { shop.Spec.Host, shop.Spec.Workers = "", nil })
	w.Rest()
	is(w, shop, "True")
	w.Delete(shop)
	w.Rest()
	if host := registries.Of(w).HostOf(namespace + "/corner"); host != "" || w.Exists(shop) {
		w.Errorf("what was deleted is still there, with the host %q", host)
	}
}

// TestL11Faults tells the story with a fault at each request of the operator, one at a time.
func TestL11Faults(t *testing.T) {
	e := &stories.End{Kinds: kinds}
	simulation.RunFaults(t, cluster(t), func(w *simulation.World) {
		change(w)
		e.Compare(w)
	})
}

// TestSameRequests tells the story three times. The operator writes the same in the same order (L8).
func TestSameRequests(t *testing.T) {
	var first []string
	for range 3 {
		simulation.Run(t, cluster(t), func(w *simulation.World) {
			change(w)
			writes := w.Writes()
			if first == nil {
				first = writes
			}
			if !slices.Equal(first, writes) || len(first) < 10 {
				w.Errorf("the operator writes\n%q, and then\n%q", first, writes)
			}
		})
	}
}

const syncPeriod = 10 * time.Hour

// lookedAt returns options with which all shops are looked at every ten hours. That makes no request, but calls the
// registry, and so the calls do not count.
func lookedAt(t *testing.T) simulation.Options {
	t.Helper()
	options := cluster(t)
	options.Manager.Cache.SyncPeriod = new(syncPeriod)
	options.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		return controller.New(espalier.NewConfig(mgr), registries.In(ctx), time.Minute).SetupWithManager(ctx, mgr)
	}
	return options
}

// TestLinear counts what the operator writes: for ten times as many shops it is no more than ten times as much (L12).
// At rest they cost no requests, even when all are looked at again. One that changes costs as much as if it were alone.
func TestLinear(t *testing.T) {
	tell := func(n int) (writes int) {
		simulation.Run(t, lookedAt(t), func(w *simulation.World) {
			w.Create(newSettings())
			shops := make([]*v1.Shop, n)
			for i := range shops {
				shops[i] = newShop(fmt.Sprintf("shop-%d", i))
				w.Create(shops[i])
			}
			w.Rest()
			writes = len(w.Writes())
			w.Idle(2 * syncPeriod)
			w.Update(shops[3], func() { shops[3].Spec.Workers[0].Schedule = "0 0 2 2 *" })
			w.Rest()
			w.Wrote("update CronJob default/shop-3-mail", "update Shop/status default/shop-3")
		})
		return writes
	}
	few, many := tell(5), tell(50)
	t.Logf("%d writes for 5, %d for 50", few, many)
	if few == 0 || many > 10*few {
		t.Errorf("%d writes for 5, %d for 50", few, many)
	}
}

// TestExplore tells drawn stories: each ends as if the shops that are left had been created at once. Several shops have
// no hosts, for which of two has a host depends on which asks first.
func TestExplore(t *testing.T) {
	for name, e := range map[string]simulation.Exploration{
		"three shops without hosts": {Hints: simulation.Hints{".spec.host": {}}},
		"a shop with a host": {
			Resources: 1, Hints: simulation.Hints{".spec.host": {"a.example.com", "b.example.com"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := cluster(t)
			options.Objects = append(options.Objects, newSettings())
			e.Resource, e.Disturb = &v1.Shop{}, true
			e.Hints[".spec.image"] = []any{"shop:1", "shop:2"}
			e.Hints[".spec.settings"] = []any{"settings"}
			e.Hints[".spec.workers[*].schedule"] = []any{"0 0 1 1 *", "0 0 2 2 *"}
			simulation.Explore(t, options, e)
		})
	}
}

const day = 24 * time.Hour

// drifts change something of a shop that is the operator's business, a different thing each day.
func drifts(someone *simulation.Actor, shop string) []func() {
	deployment := &appsv1.Deployment{ObjectMeta: stories.Named(namespace, shop)}
	service := &corev1.Service{ObjectMeta: stories.Named(namespace, shop)}
	ingress := &networkingv1.Ingress{ObjectMeta: stories.Named(namespace, shop)}
	worker := &batchv1.CronJob{ObjectMeta: stories.Named(namespace, shop+"-mail")}
	return []func(){
		func() {
			someone.Update(deployment, func() { deployment.Spec.Template.Spec.Containers[0].Image = "else:1" })
		},
		func() { someone.Delete(deployment) },
		func() { someone.Update(service, func() { service.Spec.Selector = nil }) },
		func() { someone.Delete(service) },
		func() { someone.Update(ingress, func() { clear(ingress.Labels) }) },
		func() { someone.Delete(worker) },
	}
}

var days = flag.Int("stories.days", 8, "how long the story of days is; 365 is a year")

// TestDays has somebody change something each day, and a user as well, while the certificate of the webhooks is renewed
// once a week. In the end the shop is as on the first day.
func TestDays(t *testing.T) {
	simulation.Run(t, withWebhooks(t, lookedAt(t)), func(w *simulation.World) {
		shop := newShop("corner")
		w.Create(newSettings(), shop)
		w.Rest()
		is(w, shop, "True")
		first := &stories.End{Kinds: kinds}
		first.Compare(w)
		changes := drifts(w.As("someone"), shop.Name)
		for today := range *days {
			if today%7 == 6 {
				renew(w, strconv.Itoa(today))
			}
			changes[today%len(changes)]()
			w.Pass(day / 2)
			w.Update(shop, func() { shop.Spec.Image = fmt.Sprintf("shop:1.%d", today) })
			w.Pass(day / 2)
			is(w, shop, "True")
		}
		w.Update(shop, func() { shop.Spec.Image = "shop:1" })
		w.Pass(day)
		first.Compare(w)
		w.Idle(day)
	})
}
