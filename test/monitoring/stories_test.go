package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	platform "github.com/espalier-dev/espalier/examples/platform/controller"
	shopv1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	shopconfig "github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// story is what happens to an operator, and what is seen of it.
type story struct {
	name    string
	options func(t *testing.T) simulation.Options
	tell    func(w *simulation.World)
	// fires are all alerts that fire, by their names without the prefix, each as often as it fires. All end before the
	// story does.
	fires []string
}

var stories = []story{
	{"shops live in peace", shops, shopsInPeace, nil},
	{"shops live with faults", shopsWithFaults, shopsInPeace, nil},
	{"a shard lives in peace", shardedShops, shardInPeace, nil},
	{"a platform lives in peace", platforms, platformInPeace, nil},
	{"settings are missing", shops, settingsMissing, []string{"ResourcesNotReady"}},
	{"a right is missing", shopsWithoutRight, rightMissing, []string{
		"WritesRefused", "PermanentErrors", "RequestsFail", "ResourcesNotReady",
	}},
	{"the role is gone", shopsWithRole, roleGone, []string{
		// The deletion of a child is refused, the patch of the finalizers, and the update of the status.
		"WritesRefused", "WritesRefused", "WritesRefused", "PermanentErrors", "RequestsFail", "ResourcesNotReady",
	}},
	{"the registry is down", shops, registryDown, []string{"RequestsFail", "ResourcesNotReady"}},
	{"the registry refuses for good", shops, registryRefuses, []string{"PermanentErrors", "ResourcesNotReady"}},
	{"the registry is slow", shops, registrySlow, []string{"RequestsSlow"}},
	{"the registry does not answer", shops, registryHangs, []string{"RequestHangs", "QueueStands"}},
	{"a shop cannot be decoded", looseShops, shopNotDecoded, []string{"WatchFails"}},
	{"the API server is down", shops, serverDown, []string{"APIServerFails"}},
	{"another process has the lease", shopsWithElection, leaseTaken, []string{"NoLeader"}},
	{"an object depends on the time", flappingShops, flapping, []string{
		"WritesDamped", "RequestsFail", "ResourcesNotReady",
	}},
	{"a wave does not become ready", platforms, waveWaits, []string{"ComponentStuck", "ResourcesNotReady"}},
	{"somebody else uses the type", platforms, typeUsed, []string{"DeletionStuck", "ResourcesNotReady"}},
	{"somebody else writes the settings", platforms, settingsContested, []string{
		"WritesDamped", "ComponentStuck", "ResourcesNotReady",
	}},
	{"the search has no image", platformsWithoutImage, searchDown, []string{"FeatureDown"}},
}

func newShop(name string) *shopv1.Shop {
	return &shopv1.Shop{ObjectMeta: named(name), Spec: shopv1.ShopSpec{
		Image: "shop:1", Replicas: 2, Host: name + ".example.com", Settings: "settings",
		Workers: []shopv1.Worker{{Name: "mail", Schedule: "0 0 1 1 *"}},
	}}
}

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named("settings"), Data: map[string]string{"a": "b"}}
}

// shopNotDecoded has a user write a text where the Go type of shops has a number.
func shopNotDecoded(w *simulation.World) {
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	loose := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image": "shop:1", "replicas": "many", "host": "loose.example.com", "settings": "settings",
	}}}
	loose.SetGroupVersionKind(shopv1.GroupVersion.WithKind("Shop"))
	loose.SetNamespace(namespace)
	loose.SetName("loose")
	w.Create(loose)
	w.Pass(time.Hour)
	w.Delete(loose)
	w.Pass(time.Hour)
}

func shopsInPeace(w *simulation.World) {
	first := newShop("first")
	w.Create(settings(), first, newShop("second"))
	w.Pass(time.Hour)
	w.Update(first, func() { first.Spec.Replicas, first.Spec.Workers = 3, nil })
	w.Delete(newShop("second"))
	w.Pass(time.Hour)
	w.Kill()
	w.Pass(time.Hour)
}

func shardInPeace(w *simulation.World) {
	first := newShop("first")
	first.Labels = shardOfShops
	w.Create(settings(), first, newShop("another"))
	w.Pass(time.Hour)
}

// shopsWithFaults has an operator of which one request in ten fails.
func shopsWithFaults(t *testing.T) simulation.Options {
	o := shops(t)
	o.Plan = simulation.Plan{Seed: 1, Chances: []simulation.Chance{
		{Kind: simulation.Fails, OneIn: 10}, {Kind: simulation.Conflicts, OneIn: 10},
	}}
	return o
}

func settingsMissing(w *simulation.World) {
	w.Create(newShop("first"))
	w.Pass(40 * time.Minute)
	w.Kill() // another process goes on with the alert
	w.Pass(20 * time.Minute)
	w.Create(settings())
	w.Pass(10 * time.Minute)
}

// shopsWithRole has an operator that may do what its role allows.
func shopsWithRole(t *testing.T) simulation.Options {
	o := shops(t)
	role, err := shopconfig.Role()
	if err != nil {
		t.Fatal(err)
	}
	o.Rules = role.Rules
	return o
}

// shopsWithoutRight has an operator that may not write Ingresses.
func shopsWithoutRight(t *testing.T) simulation.Options {
	o := shopsWithRole(t)
	for i, rule := range o.Rules {
		if slices.Contains(rule.Resources, "ingresses") {
			o.Rules[i].Verbs = []string{"get", "list", "watch"}
		}
	}
	return o
}

// roleGone has somebody delete the role of the operator before a shop.
func roleGone(w *simulation.World) {
	first, role := newShop("first"), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: simulation.ServiceAccount}}
	w.Create(settings(), first)
	w.Pass(time.Hour)
	w.Get(role)
	w.Delete(role)
	w.Delete(first)
	w.Pass(time.Hour)
	role.ResourceVersion, role.UID = "", ""
	w.Create(role)
	w.Pass(time.Hour)
}

func rightMissing(w *simulation.World) {
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	w.Create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ingresses"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: []string{"*"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "ingresses"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ingresses"},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: simulation.ServiceAccount,
			}},
		})
	w.Pass(time.Hour)
}

func registryDown(w *simulation.World) {
	hosts := registries.Of(w)
	hosts.Fail(errors.New("the registry is down"))
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	hosts.Fail(nil)
	w.Pass(time.Hour)
}

// registryRefuses has an error that is not tried again: somebody has to change the shop.
func registryRefuses(w *simulation.World) {
	hosts, first := registries.Of(w), newShop("first")
	hosts.Fail(reconcile.TerminalError(errors.New("the account is closed")))
	w.Create(settings(), first)
	w.Pass(time.Hour)
	hosts.Fail(nil)
	w.Update(first, func() { first.Spec.Host = "other.example.com" })
	w.Pass(10 * time.Minute)
}

func registrySlow(w *simulation.World) {
	hosts, first := registries.Of(w), newShop("first")
	w.Create(settings(), first)
	hosts.takes.Store(int64(20 * time.Second))
	for i := range 60 {
		if i == 40 {
			hosts.takes.Store(0)
		}
		w.Pass(time.Minute)
		w.Update(first, func() { first.Spec.Host = fmt.Sprintf("host-%d.example.com", i) })
	}
}

func registryHangs(w *simulation.World) {
	hosts := registries.Of(w)
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	hosts.takes.Store(int64(40 * time.Minute))
	w.Create(newShop("second"))
	w.Pass(time.Minute)
	hosts.takes.Store(0)
	w.Create(newShop("third"))
	w.Pass(time.Hour)
}

// serverDown has an API server that does not answer. The requests of all clients in the process count, those of the
// controllers of the cluster too.
func serverDown(w *simulation.World) {
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	w.RestartServer(30 * time.Minute)
	w.Pass(time.Hour)
}

func shopsWithElection(t *testing.T) simulation.Options {
	o := shops(t)
	o.Manager.LeaderElection, o.Manager.LeaderElectionID = true, "shop.example.com"
	return o
}

// leaseTaken has somebody hold the lease who is not scraped, and who does not do the work.
func leaseTaken(w *simulation.World) {
	w.Create(settings(), newShop("first"))
	w.Pass(time.Hour)
	someone := w.As("someone")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop.example.com"}}
	for range 12 * 60 / 5 {
		someone.Update(lease, func() {
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("someone"), ptr.To(metav1.NowMicro())
		})
		w.Pass(5 * time.Second)
	}
	w.Pass(10 * time.Minute)
}

// flappingShops has an operator whose desired object is another in each request.
func flappingShops(t *testing.T) simulation.Options {
	o := shops(t)
	o.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		observer, err := observer(ctx)
		if err != nil {
			return err
		}
		desired := func(_ context.Context, shop *shopv1.Shop) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: named(shop.Name), Data: map[string]string{"now": time.Now().String()}}, nil
		}
		return espalier.For(espalier.NewConfig(mgr).WithObserver(observer), espalier.Owns("Note", desired)).
			SetupWithManager(ctx, mgr)
	}
	return o
}

func flapping(w *simulation.World) {
	w.Create(newShop("first"))
	w.Pass(time.Hour)
	w.Delete(newShop("first"))
	w.Pass(30 * time.Minute)
}

const name = "demo"

func newPlatform(version string) *v1alpha1.Platform {
	return &v1alpha1.Platform{ObjectMeta: named(name), Spec: v1alpha1.PlatformSpec{Version: version}}
}

// edit changes the spec of the platform.
func edit(w *simulation.World, change func(spec *v1alpha1.PlatformSpec)) {
	w.Helper()
	p := newPlatform("")
	w.Update(p, func() { change(&p.Spec) })
	w.Pass(time.Minute)
}

// migrate does what a Job would do.
func migrate(w *simulation.World, version string) {
	w.Helper()
	migration := &corev1.ConfigMap{ObjectMeta: named(platform.MigrationName(name))}
	w.As("job").Update(migration, func() { migration.Data[platform.Migrated] = version })
	w.Pass(time.Minute)
}

// show does what an operator of dashboards would do.
func show(w *simulation.World) {
	w.Helper()
	dashboard := platform.NewDashboard(namespace, platform.OverviewName(name), "")
	w.As("dashboards").Status(dashboard, func() {
		dashboard.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Shown", "message": "",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}}
	})
	w.Pass(time.Minute)
}

// installed has a platform that is ready.
func installed(w *simulation.World, version string) {
	w.Helper()
	w.Create(newPlatform(version))
	w.Pass(time.Minute)
	migrate(w, version)
	show(w)
	w.Pass(time.Hour)
	p := newPlatform("")
	w.Get(p)
	if ready := p.Status.GetCondition("Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
		w.Fatalf("the platform is not Ready: %+v", p.Status)
	}
}

func platformInPeace(w *simulation.World) {
	installed(w, platform.Version1)
	edit(w, func(spec *v1alpha1.PlatformSpec) { spec.Version = platform.Version11 })
	migrate(w, platform.Version11)
	search(w)
	w.Pass(time.Hour)
	w.Delete(newPlatform(""))
	w.Pass(time.Hour)
}

// search has the platform have a search.
func search(w *simulation.World) {
	w.Helper()
	edit(w, func(spec *v1alpha1.PlatformSpec) { spec.Search = &v1alpha1.Search{} })
	index := &corev1.ConfigMap{ObjectMeta: named(platform.IndexName(name))}
	w.As("indexer").Update(index, func() { index.Data[platform.Endpoint] = "http://index" })
	w.Pass(time.Minute)
}

func waveWaits(w *simulation.World) {
	w.Create(newPlatform(platform.Version1))
	w.Pass(time.Hour)
	migrate(w, platform.Version1)
	show(w)
	w.Pass(time.Hour)
}

func typeUsed(w *simulation.World) {
	installed(w, platform.Version1)
	someone, sales := w.As("someone"), platform.NewDashboard(namespace, "sales", "Sales of this week")
	someone.Create(sales)
	w.Delete(newPlatform(""))
	w.Pass(time.Hour)
	someone.Delete(sales)
	w.Pass(time.Hour)
}

func settingsContested(w *simulation.World) {
	installed(w, platform.Version1)
	someone, settings := w.As("someone"), &corev1.ConfigMap{ObjectMeta: named(platform.SettingsName(name))}
	for range 30 * 60 / 10 {
		someone.Update(settings, func() { settings.Data["retention"] = "1d" })
		w.Pass(10 * time.Second)
	}
	w.Pass(time.Hour)
}

// platformsWithoutImage has pods that do not start in one release.
func platformsWithoutImage(t *testing.T) simulation.Options {
	o := platforms(t)
	o.Pods = func(pod *corev1.Pod) (behavior simulation.PodBehavior) {
		if pod.Spec.Containers[0].Image == "registry.example.com/search:"+platform.Version11 {
			behavior.Waiting = "ImagePullBackOff"
		}
		return behavior
	}
	return o
}

func searchDown(w *simulation.World) {
	installed(w, platform.Version11)
	search(w)
	w.Pass(40 * time.Minute)
	edit(w, func(spec *v1alpha1.PlatformSpec) { spec.Version = platform.Version2 })
	migrate(w, platform.Version2)
	w.Pass(10 * time.Minute)
}
