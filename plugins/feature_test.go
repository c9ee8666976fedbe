package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	gates "github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deployment is what an owner asks for that does something.
func deployment(r request) ([]*plugins.Dependent, error) {
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: r.Owner.Name + "-server"}}
	object.Spec.Replicas = new(int32(2))
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.Owner.Name}}
	object.Spec.Template.Labels = object.Spec.Selector.MatchLabels
	object.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "x"}}
	return []*plugins.Dependent{plugins.Owns("server", object)}, nil
}

// featureReady is the condition of the feature around the capability.
const featureReady = "DatabaseReady"

// inFeature puts the capability into a feature that the spec switches off and suspends.
func inFeature(host *plugins.Host) *feature.Feature[*resources.Widget] {
	return &feature.Feature[*resources.Widget]{
		Name: "Database", Condition: featureReady,
		Gate: func(_ context.Context, w *resources.Widget) gates.Gate {
			return gates.When(w.Spec.Fields["off"] == "")
		},
		Suspended: func(_ context.Context, w *resources.Widget) (bool, error) {
			return w.Spec.Fields["paused"] != "", nil
		},
		Reconciler: capability(host).Creates(&appsv1.Deployment{}),
	}
}

// untilFeature has the gadget reconciled until the condition of the feature has the reason.
func (w *world) untilFeature(reason string) metav1.Condition {
	w.t.Helper()
	var reached metav1.Condition
	controlplanetest.Eventually(w.t, "the condition of the feature has not the reason "+reason, func(context.Context) error {
		_, err := w.once("gadget")
		found := meta.FindStatusCondition(w.widget("gadget").Status.Conditions, featureReady)
		if err != nil || found == nil || found.Reason != reason {
			return fmt.Errorf("it is %+v, and the last error %w", found, errors.Join(err))
		}
		reached = *found
		return nil
	})
	return reached
}

// A feature knows why its capability is not as it should be. It suspends the objects of a plugin, and deletes them.
func TestInAFeature(t *testing.T) {
	f := newFolder(t)
	host := f.host(map[string]string{"databases": "program"})
	w := worldOf(t, host)
	w.root = espalier.For(reconcilers.Config{
		Client: w.Client, APIReader: w.Client, Recorder: w.root.Config.Recorder, Tracker: w.root.Config.Tracker,
	}, inFeature(host))

	// A text that alone differs is shown after a minute.
	w.untilLogged("all plugins were tried")
	w.ask("gadget", "do=deployment")
	if found := w.untilFeature("Blocked"); !strings.Contains(found.Message, "no plugin provides database/postgres") {
		t.Errorf("the condition of the feature says %q, want why there is nothing", found.Message)
	}
	f.write(map[string]string{"databases": f.put("databases", "")})
	w.untilFeature("Creating")
	object := &appsv1.Deployment{}
	if !w.has(object, "gadget-server") || *object.Spec.Replicas != 2 {
		t.Errorf("the object has %v replicas, want 2", object.Spec.Replicas)
	}
	w.ask("gadget", "do=deployment", "paused=yes")
	w.untilFeature("Suspending") // nobody stops its pods
	if w.has(object, "gadget-server"); *object.Spec.Replicas != 0 {
		t.Errorf("the object has %d replicas while the feature is suspended, want none", *object.Spec.Replicas)
	}
	// The plugin is not needed to switch off.
	f.write(nil)
	w.untilLogged("not in the list any more")
	w.ask("gadget", "do=deployment", "off=yes")
	w.untilFeature("Disabled")
	if w.has(object, "gadget-server") {
		t.Error("the object is there while the feature is off, want it deleted")
	}
}

// Each item of a resource may have a capability of its own.
func TestForItems(t *testing.T) {
	called := &calls{}
	host := &plugins.Host{InProcess: []plugins.Plugin{{Category: "database", Types: []plugins.Type{{
		Name: "postgres", Dependents: func(context.Context, plugins.Request) ([]*plugins.Dependent, error) {
			called.Add(1)
			return one(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}})
		},
	}}}}}
	w := worldOf(t, host)
	items := func(_ context.Context, w *resources.Widget) ([]string, error) {
		return strings.Fields(w.Spec.Fields["items"]), nil
	}
	w.root = espalier.For(reconcilers.Config{
		Client: w.Client, APIReader: w.Client, Recorder: w.root.Config.Recorder, Tracker: w.root.Config.Tracker,
	}, espalier.Each("Databases", items, func(item string) string { return item }, capability(host)))
	w.ask("gadget", "items=a b")
	found := w.until("gadget", "AlreadyExists")
	if !strings.Contains(found.Message, "for another item") {
		t.Errorf("the condition says %q, want that the object is that of the other item", found.Message)
	}
	w.ask("gadget", "items=b")
	w.until("gadget", "Ready")
	if !w.has(&corev1.ConfigMap{}, "shared") {
		t.Error("the object of the item is not there, want it")
	}
	w.ask("gadget", "items=")
	for range 10 {
		_, _ = w.once("gadget")
	}
	if w.has(&corev1.ConfigMap{}, "shared") || len(w.widget("gadget").Status.ForEach) > 0 {
		t.Errorf("what is left is %v and an object, want nothing", w.widget("gadget").Status.ForEach)
	}
}
