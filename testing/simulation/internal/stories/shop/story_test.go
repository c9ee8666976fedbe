package shop_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// The kinds of all objects that the operator writes.
var kinds = []schema.GroupVersionKind{
	v1.GroupVersion.WithKind("Shop"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"),
	batchv1.SchemeGroupVersion.WithKind("CronJob"),
}

const namespace = "default"

func newShop(name string) *v1.Shop {
	return &v1.Shop{ObjectMeta: stories.Named(namespace, name), Spec: v1.ShopSpec{
		Image: "shop:1", Replicas: 2, Host: name + ".example.com", Settings: "settings",
		Workers: []v1.Worker{{Name: "mail", Schedule: "0 0 1 1 *"}, {Name: "bill", Schedule: "0 0 1 1 *"}},
	}}
}

// newSettings returns the ConfigMap that the shops name.
func newSettings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: stories.Named(namespace, "settings"), Data: map[string]string{"a": "b"}}
}

// is fails the story unless the shop is Ready, or not, at its current generation.
func is(w *simulation.World, shop *v1.Shop, status string) {
	w.Helper()
	w.Get(shop)
	ready := shop.Status.GetCondition(v1.Ready)
	if ready == nil || string(ready.Status) != status || shop.Status.ObservedGeneration != shop.Generation {
		w.Errorf("%s is not Ready=%s: %+v", shop.Name, status, shop.Status)
	}
}

// ends are what the cluster is like in the story.
type ends struct{ waiting, healed, gone stories.End }

func newEnds() *ends {
	return &ends{
		waiting: stories.End{Kinds: kinds}, healed: stories.End{Kinds: kinds}, gone: stories.End{Kinds: kinds},
	}
}

// life is the story of two shops that want the same host, from their creation to the end of one.
func life(w *simulation.World, e *ends) {
	hosts := registries.Of(w)
	first, second := newShop("first"), newShop("second")
	w.Create(first)
	w.Rest()
	is(w, first, "False")
	e.waiting.Compare(w)

	settings := newSettings()
	w.Create(settings)
	w.Rest()
	is(w, first, "True")
	second.Spec.Host = first.Spec.Host
	w.Create(second)
	w.Pass(10 * time.Minute)
	w.Update(first, func() { first.Spec.Host, first.Spec.Workers = "other.example.com", first.Spec.Workers[:1] })
	foreign := stories.Foreign{
		&corev1.Service{ObjectMeta: stories.Named(namespace, "third"), Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "third"}, Ports: []corev1.ServicePort{{Port: 80}},
		}},
	}
	foreign.Create(w)
	third := newShop("third")
	w.Create(third)
	someone := w.As("someone")
	deployment := &appsv1.Deployment{ObjectMeta: stories.Named(namespace, "first")}
	someone.Update(deployment, func() { deployment.Spec.Replicas = ptr.To[int32](7) })
	someone.Delete(&corev1.Service{ObjectMeta: stories.Named(namespace, "first")})
	w.Update(settings, func() { settings.Data["a"] = "c" })
	w.Rest()
	is(w, first, "True")
	is(w, second, "True")
	is(w, third, "False")
	if one, two := hosts.HostOf(namespace+"/first"), hosts.HostOf(namespace+"/second"); one != "other.example.com" ||
		two != "first.example.com" {
		w.Errorf("the hosts are %s and %s", one, two)
	}
	e.healed.Compare(w)

	w.Delete(first, third)
	w.Rest()
	if host := hosts.HostOf(namespace + "/first"); host != "" || w.Exists(first) || w.Exists(third) {
		w.Errorf("what was deleted is still there, with the host %q", host)
	}
	foreign.AreUntouched(w)
	e.gone.Compare(w)
	w.Pass(time.Hour)
	calls := hosts.Calls()
	w.Idle(time.Hour)
	if n := hosts.Calls() - calls; n > 0 {
		w.Errorf("%d calls of the registry in an hour in which nothing happened", n)
	}
}

// TestLife tells the story under plans of many seeds. It has to end in the same state each time.
func TestLife(t *testing.T) {
	e := newEnds()
	var struck stories.Struck
	t.Cleanup(func() { t.Log(struck.String()) })
	simulation.RunSeeds(t, cluster(t), func(w *simulation.World) {
		life(w, e)
		struck.Count(w)
	})
}
