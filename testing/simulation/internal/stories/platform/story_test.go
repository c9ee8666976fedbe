package platform_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// The kinds of all objects that the operator writes.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("Platform"),
	apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
}

const name = "demo"

func newPlatform(version string) *v1alpha1.Platform {
	return &v1alpha1.Platform{
		ObjectMeta: stories.Named(namespace, name), Spec: v1alpha1.PlatformSpec{Version: version},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: stories.Named(namespace, name)}
}

func theType() client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: stories.Named("", controller.DashboardCRDName)}
}

func overview() *unstructured.Unstructured {
	return controller.NewDashboard(namespace, controller.OverviewName(name), "")
}

// isReady fails the story unless the platform is Ready at its current generation, with so many objects.
func isReady(w *simulation.World, objects int) {
	w.Helper()
	p := newPlatform("")
	w.Get(p)
	ready := p.Status.GetCondition("Ready")
	if ready == nil || ready.Status != "True" || p.Status.State != apis.ComponentReady ||
		p.Status.AppliedGeneration != p.Generation || len(p.Status.Inventory) != objects {
		w.Errorf("the platform is not Ready with %d objects: %+v", objects, p.Status)
	}
}

// says fails the story unless the platform's condition has a text.
func says(w *simulation.World, text string) {
	w.Helper()
	p := newPlatform("")
	w.Get(p)
	installed := p.Status.GetCondition(v1alpha1.Installed)
	if installed == nil || !strings.Contains(installed.Message, text) {
		w.Fatalf("the platform does not say %q: %+v", text, installed)
	}
}

// migrate does what a Job would do.
func migrate(w *simulation.World, version string) {
	w.Helper()
	migration := configMap(controller.MigrationName(name))
	w.As("job").Update(migration, func() { migration.Data[controller.Migrated] = version })
	w.Rest()
}

// show does what an operator of dashboards would do.
func show(w *simulation.World) {
	w.Helper()
	dashboard := overview()
	w.As("dashboards").Status(dashboard, func() {
		dashboard.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Shown", "message": "",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}}
	})
	w.Rest()
}

func setVersion(w *simulation.World, version string) {
	w.Helper()
	p := newPlatform("")
	w.Update(p, func() { p.Spec.Version = version })
	w.Rest()
}

// ends are what the cluster is like in the story.
type ends struct{ installed, upgraded, blocked, gone stories.End }

func newEnds() *ends {
	return &ends{
		installed: stories.End{Kinds: kinds}, upgraded: stories.End{Kinds: kinds},
		blocked: stories.End{Kinds: kinds}, gone: stories.End{Kinds: kinds},
	}
}

// life is the story of a platform, from its installation over two upgrades to its end.
func life(w *simulation.World, e *ends) {
	w.Create(newPlatform(controller.Version1))
	w.Rest()
	says(w, "waiting for ConfigMap "+namespace+"/"+controller.MigrationName(name))
	migrate(w, controller.Version1)
	show(w)
	isReady(w, 8)
	foreign := stories.Foreign{
		&corev1.ConfigMap{ObjectMeta: stories.Named(namespace, "mine"), Data: map[string]string{"a": "b"}},
	}
	foreign.Create(w)
	e.installed.Compare(w)

	someone := w.As("someone")
	settings := configMap(controller.SettingsName(name))
	someone.Update(settings, func() { settings.Data["retention"] = "1d" })
	someone.Delete(&corev1.ServiceAccount{ObjectMeta: stories.Named(namespace, controller.ViewerName(name))})
	w.Rest()
	isReady(w, 8)
	e.installed.Compare(w)

	setVersion(w, controller.Version11)
	migrate(w, controller.Version11)
	isReady(w, 7)
	sales := controller.NewDashboard(namespace, "sales", "Sales of this week")
	someone.Create(sales)
	foreign = append(foreign, sales)
	setVersion(w, controller.Version2)
	migrate(w, controller.Version2)
	says(w, "in use by Dashboard "+namespace+"/sales")
	if w.Exists(overview()) || !w.Exists(theType()) {
		w.Error("the first dashboard is there, or the type is not")
	}
	e.upgraded.Compare(w)

	setVersion(w, controller.Version11)
	migrate(w, controller.Version11)
	show(w)
	isReady(w, 7)
	w.Delete(newPlatform(""))
	w.Rest()
	says(w, "in use by Dashboard "+namespace+"/sales")
	foreign.AreUntouched(w)
	e.blocked.Compare(w)

	someone.Delete(sales)
	w.Rest()
	if w.Exists(newPlatform("")) || w.Exists(theType()) {
		w.Error("what was deleted is still there")
	}
	foreign[:1].AreUntouched(w)
	e.gone.Compare(w)
	w.Pass(time.Hour)
	w.Idle(time.Hour)
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
