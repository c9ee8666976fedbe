package metrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources are counted by condition, from one request to the next, until they are gone.
func TestConditionsAreCounted(t *testing.T) {
	names := []string{
		"espalier_resources", "espalier_conditions", "espalier_condition_transitions_total",
		"espalier_resource_condition_timestamp_seconds",
	}
	w := newWorld(t, metrics.Options{PerResource: true}, widget("a"), widget("b"))
	ready := map[string]bool{"a": true}
	began := time.Unix(1000, 0)
	root := &widgetRoot{
		Name: "root", Config: w.config,
		Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
			if ready[widget.Name] {
				widget.Status.MarkChildReady(ctx)
			} else {
				widget.Status.MarkChildNotReady(ctx, "Broken", "")
			}
			return nil
		}},
	}
	reconcile := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := root.Reconcile(rtime.StashNow(t.Context(), began), requestFor(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// counts returns the series for so many resources that are ready and not, after so many transitions.
	counts := func(isTrue, isFalse, toTrue, toFalse float64, more map[string]float64) map[string]float64 {
		want := map[string]float64{"resources": isTrue + isFalse}
		for _, kind := range []string{"ChildReady", "Ready"} {
			for status, counts := range map[string][2]float64{
				"True": {isTrue, toTrue}, "False": {isFalse, toFalse}, "Unknown": {},
			} {
				labels := " status=" + status + " type=" + kind
				want["conditions"+labels] = counts[0]
				want["condition_transitions_total"+labels] = counts[1]
			}
		}
		for key, value := range more {
			for _, kind := range []string{"ChildReady", "Ready"} {
				want["resource_condition_timestamp_seconds name="+key+" type="+kind] = value
			}
		}
		return want
	}
	reconcile("a", "b", "a")
	w.expect(t, "what is found first is no transition", counts(1, 1, 0, 0, map[string]float64{
		"a namespace=default status=True": 1000, "b namespace=default status=False": 1000,
	}), names...)
	ready["b"], began = true, began.Add(time.Minute)
	reconcile("a", "b", "a")
	w.expect(t, "a transition", counts(2, 0, 1, 0, map[string]float64{
		"a namespace=default status=True": 1000, "b namespace=default status=True": 1060,
	}), names...)
	if err := w.client.Delete(t.Context(), widget("a")); err != nil {
		t.Fatal(err)
	}
	reconcile("a", "a")
	w.expect(t, "a resource is gone", counts(1, 0, 1, 0, map[string]float64{
		"b namespace=default status=True": 1060,
	}), names...)
}

// A resource that is made again under its name, before a request sees that the one before is gone, begins anew.
func TestAResourceMadeAgainBeginsAnew(t *testing.T) {
	names := []string{"espalier_resource_condition_timestamp_seconds", "espalier_condition_transitions_total"}
	w := newWorld(t, metrics.Options{PerResource: true}, widget("w"))
	root := &widgetRoot{
		Name: "root", Config: w.config,
		Reconciler: &widgetSync{Name: "sync", Sync: func(ctx context.Context, widget *resources.Widget) error {
			widget.Status.MarkChildReady(ctx)
			return nil
		}},
	}
	for i, uid := range []types.UID{"first", "second"} {
		if i > 0 {
			if err := w.client.Delete(t.Context(), widget("w")); err != nil {
				t.Fatal(err)
			}
		}
		made := widget("w")
		made.UID = uid
		if err := client.IgnoreAlreadyExists(w.client.Create(t.Context(), made)); err != nil {
			t.Fatal(err)
		}
		ctx := rtime.StashNow(t.Context(), time.Unix(int64(1000*(i+1)), 0))
		if _, err := root.Reconcile(ctx, requestFor("w")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{}
	for _, kind := range []string{"ChildReady", "Ready"} {
		want["resource_condition_timestamp_seconds name=w namespace=default status=True type="+kind] = 2000
		for _, status := range []string{"True", "False", "Unknown"} {
			want["condition_transitions_total status="+status+" type="+kind] = 0
		}
	}
	w.expect(t, "the second resource", want, names...)
}

// Each feature of a resource has one series, for as long as the resource lives.
func TestFeaturesAreCounted(t *testing.T) {
	names := []string{"espalier_features", "espalier_resource_feature_timestamp_seconds"}
	data, on := "a", true
	now := time.Unix(1000, 0)
	w := newWorld(t, metrics.Options{PerResource: true}, widget("w"))
	root := &widgetRoot{
		Name: "root", Config: w.config,
		Reconciler: &feature.Feature[*resources.Widget]{
			Name: "Till", Reconciler: settings(&data),
			Gate: func(context.Context, *resources.Widget) gate.Gate { return gate.When(on) },
		},
	}
	reconcile := func() {
		t.Helper()
		for range 2 {
			if _, err := root.Reconcile(rtime.StashNow(t.Context(), now), requestFor("w")); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Minute)
		}
	}
	reconcile()
	w.expect(t, "a feature that is on", map[string]float64{
		"features path=root/Till reason=Healthy status=True":                                                  1,
		"resource_feature_timestamp_seconds feature=Till name=w namespace=default reason=Healthy status=True": 1000,
	}, names...)
	on = false
	reconcile()
	w.expect(t, "a feature that is off", map[string]float64{
		"features path=root/Till reason=Disabling status=False":                                                0,
		"features path=root/Till reason=Healthy status=True":                                                   0,
		"features path=root/Till reason=Disabled status=True":                                                  1,
		"resource_feature_timestamp_seconds feature=Till name=w namespace=default reason=Disabled status=True": 1120,
	}, names...)
	if err := w.client.Delete(t.Context(), widget("w")); err != nil {
		t.Fatal(err)
	}
	reconcile()
	w.expect(t, "the resource is gone", map[string]float64{
		"features path=root/Till reason=Disabling status=False": 0,
		"features path=root/Till reason=Healthy status=True":    0,
		"features path=root/Till reason=Disabled status=True":   0,
	}, names...)
}

// A component is counted by state, its objects by phase, and its roll-outs are measured.
func TestComponentsAreCounted(t *testing.T) {
	names := []string{
		"espalier_components", "espalier_component_objects", "espalier_component_obstacles",
		"espalier_component_waves", "espalier_component_rollout_duration_seconds",
		"espalier_component_state_duration_seconds",
	}
	walls := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "walls"},
	}
	house := resources.NewAssembly("default", "house", walls)
	house.UID, house.Generation = "uid", 1
	w := newWorld(t, metrics.Options{}, house)
	now := time.Unix(1000, 0)
	root := &reconcilers.ResourceReconciler[*resources.Assembly]{
		Name: "root", Config: w.config,
		Reconciler: &component.ComponentReconciler[*resources.Assembly]{
			Name: "walls", Prefix: "test.espalier.dev", Generator: resources.AssemblyGenerator(), FenceMargin: -1,
		},
	}
	reconcile := func(times int) {
		t.Helper()
		for range times {
			if _, err := root.Reconcile(rtime.StashNow(t.Context(), now), requestFor("house")); err != nil {
				t.Fatal(err)
			}
		}
	}
	reconcile(1)
	w.expect(t, "the first request", map[string]float64{
		"components path=root/walls state=Pending":                        1,
		"component_objects path=root/walls phase=ScheduledForApplication": 1,
		"component_waves path=root/walls wave=0":                          1,
	}, names...)
	now = now.Add(time.Second)
	reconcile(3)
	w.expect(t, "a roll-out", map[string]float64{
		"components path=root/walls state=Pending":                        0,
		"components path=root/walls state=Processing":                     1,
		"component_objects path=root/walls phase=ScheduledForApplication": 0,
		"component_objects path=root/walls phase=Creating":                1,
		"component_obstacles kind=Waiting path=root/walls":                1,
		"component_waves path=root/walls wave=0":                          1,
	}, names...)

	pod := &corev1.Pod{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(walls), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	now = now.Add(90 * time.Second)
	reconcile(2)
	w.expect(t, "a component that is ready", map[string]float64{
		"components path=root/walls state=Pending":                          0,
		"components path=root/walls state=Processing":                       0,
		"components path=root/walls state=Ready":                            1,
		"component_objects path=root/walls phase=ScheduledForApplication":   0,
		"component_objects path=root/walls phase=Creating":                  0,
		"component_objects path=root/walls phase=Ready":                     1,
		"component_obstacles kind=Waiting path=root/walls":                  0,
		"component_waves path=root/walls wave=0":                            0,
		"component_rollout_duration_seconds path=root/walls":                1,
		"component_state_duration_seconds path=root/walls state=Processing": 1,
	}, names...)
	for name, want := range map[string]float64{
		"espalier_component_rollout_duration_seconds": 91, "espalier_component_state_duration_seconds": 90,
	} {
		if got := w.sum(t, name); got != want {
			t.Errorf("%s is %v seconds, want %v", name, got, want)
		}
	}

	if err := w.client.Delete(t.Context(), house); err != nil {
		t.Fatal(err)
	}
	reconcile(3)
	for name, count := range w.series(t, names[:4]...) {
		if count != 0 {
			t.Errorf("%s is %v once the resource is gone, want 0", name, count)
		}
	}
}
