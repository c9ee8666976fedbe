package espalier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var gadget = reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "gadget"}}

// counted is a config that counts the writes of the status.
func counted(writes *int, given ...client.Object) reconcilers.Config {
	expect := &rtesting.ExpectConfig{
		Scheme: scheme, GivenObjects: given, StatusSubResourceTypes: []client.Object{&resources.Widget{}},
		WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
			if action.GetVerb() == "update" && action.GetSubresource() == "status" {
				*writes++
			}
			return false, nil, nil
		}},
	}
	return expect.Config()
}

// A text that is another one in each call is written three times at once, then once in a minute at most, and less often
// each time.
func TestTextsThatChange(t *testing.T) {
	calls := 0
	notReady := func() error {
		calls++
		return espalier.NotReady("Late", "waiting for %d seconds", calls)
	}
	for name, make := range map[string]func() node{
		"Runs": func() node {
			return espalier.Runs("Node", func(context.Context, *resources.Widget) error { return notReady() }).Reports("A")
		},
		"Owns": func() node {
			return espalier.Owns("Node", func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
				return nil, notReady()
			}).Reports("A")
		},
	} {
		t.Run(name, func(t *testing.T) {
			writes, now := 0, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			root := espalier.For(counted(&writes, widget), make())
			var delays []time.Duration
			for range 12 {
				result, err := root.Reconcile(rtime.StashNow(t.Context(), now), gadget)
				if err != nil {
					t.Fatal(err)
				}
				if result.RequeueAfter > 0 {
					delays = append(delays, result.RequeueAfter)
				}
				now = now.Add(result.RequeueAfter)
			}
			const want = "[1m0s 2m0s 4m0s 8m0s]"
			if got := fmt.Sprint(delays); got != want || writes != 8 {
				t.Errorf("12 requests wrote the status %d times and came back after %s, want 8 times, %s", writes, got, want)
			}
		})
	}
}

// about sets the generation that the conditions are about.
func about(generation int64) func(*resources.Widget) {
	return func(w *resources.Widget) {
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].ObservedGeneration = generation
		}
		w.Status.ObservedGeneration = generation
	}
}

func reporting(name, condition string, run func(w *resources.Widget) error) node {
	return espalier.Runs(name, func(_ context.Context, w *resources.Widget) error {
		if run == nil {
			return nil
		}
		return run(w)
	}).Reports(condition)
}

func row(given *resources.Widget, expected ...object) rtesting.ReconcilerTestCase {
	return rtesting.ReconcilerTestCase{Request: gadget, GivenObjects: []object{given}, ExpectStatusUpdates: expected}
}

// requeued says that the request is repeated with back-off.
func requeued(r rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase {
	//lint:ignore SA1019 controller-runtime has no other way to back off without an error
	r.ExpectedResult = reconcilers.Result{Requeue: true}
	return r
}

// Conditions that no node has set in a request.
func TestConditionsThatAreNotEvaluated(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	b := is("Later", yes, "Succeeded", "")
	allGood := widget.With(is("ChildReady", yes, "Succeeded", ""), b, is("Ready", yes, "Ready", ""), about(3))
	old := widget.With(is("ChildReady", yes, "Succeeded", ""), b, is("Ready", yes, "Ready", ""), about(2))

	failed := func(w *resources.Widget) { w.Status.ObservedGeneration = 2 }
	errs := func(r rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase {
		r.ShouldErr = true
		return r
	}
	const text = "Widget/First: boom"
	broken := []func(*resources.Widget){is("ChildReady", no, "Failed", "boom"), b, is("Ready", no, "Retry", text)}
	waiting := is("Later", unknown, "Waiting", "not evaluated for this generation of the resource yet")
	brokenAndOld := []func(*resources.Widget){is("ChildReady", no, "Failed", "boom"), waiting, is("Ready", no, "Retry", text)}
	rtesting.RootTests{
		"after an error it stays": errs(row(allGood.Object(), widget.With(append(broken, about(3))...))),
		"but not if it is about an older generation": errs(row(old.Object(),
			widget.With(append(brokenAndOld, about(3), failed)...))),
		"after another error": errs(row(widget.With(append(brokenAndOld, about(3), failed)...).Object())),
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, reporting("First", "ChildReady", func(*resources.Widget) error { return errBoom }),
			reporting("Second", "Later", nil))
	})
	rtesting.RootTests{
		"after a quiet error it stays": requeued(row(allGood.Object())),
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, reporting("First", "ChildReady", func(*resources.Widget) error {
			return errors.Join(errors.New("busy"), reconcilers.ErrQuiet)
		}), reporting("Second", "Later", nil))
	})

	halted := widget.With(
		is("ChildReady", no, "NotFound", "ConfigMap default/settings does not exist"),
		is("Later", unknown, "Waiting", "waiting for the node Widget/Settings"),
		is("Ready", no, "NotFound", "ChildReady: ConfigMap default/settings does not exist"), about(3))
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}, widget, scheme)}
	reads := func(given *resources.Widget, expected ...object) rtesting.ReconcilerTestCase {
		r := row(given, expected...) // the event of the object brings the resource back
		r.ExpectTracks = tracks
		return r
	}
	rtesting.RootTests{
		"its node waits":           reads(allGood.Object(), halted),
		"its node waits, at first": reads(widget.Object(), halted),
		"its node waits for long":  reads(halted.Object()),
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, espalier.Reads("Settings", settings, settingsKey).Reports("ChildReady"),
			reporting("Second", "Later", nil))
	})
}

// Failures in a row write the status once, whatever the conditions were about.
func TestFailuresInARowWriteOnce(t *testing.T) {
	writes := 0
	given := widget.With(is("ChildReady", metav1.ConditionTrue, "Succeeded", ""), is("Later", metav1.ConditionTrue, "Succeeded", ""), about(2))
	root := espalier.For(counted(&writes, given),
		reporting("First", "ChildReady", func(*resources.Widget) error { return errBoom }), reporting("Second", "Later", nil))
	for range 20 {
		if _, err := root.Reconcile(t.Context(), gadget); err == nil {
			t.Error("the error is nil, want one")
		}
	}
	if writes != 1 {
		t.Errorf("20 failures wrote the status %d times, want once", writes)
	}
}

// A condition that is lost does not count as True.
func TestConditionsThatAreLost(t *testing.T) {
	const yes, unknown = metav1.ConditionTrue, metav1.ConditionUnknown
	wipe := func(w *resources.Widget) error {
		w.Status = resources.WidgetStatus{}
		return nil
	}
	lost := widget.With(is("ChildReady", unknown, "Initializing", ""), is("Later", yes, "Succeeded", ""),
		is("Ready", unknown, "Initializing", "ChildReady"), about(3))
	host := func(_ context.Context, w *resources.Widget) bool { return asks(w, "host") }
	rtesting.RootTests{
		"a node wipes the status": row(widget.Object(), lost),
		"again":                   row(lost.Object()),
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, reporting("First", "ChildReady", nil), reporting("Second", "Later", wipe),
			espalier.When("HasHost", host, reporting("Third", "Other", nil)))
	})
}

// A literal describes the conditions that its author names.
func TestLiteralsDescribeTheirConditions(t *testing.T) {
	literal := func(name, condition string) node {
		return &reconcilers.ChildReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
			Name: name, DesiredChild: desiredConfigMap, LabelChildren: true,
			ChildObjectManager:         &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{FieldManager: "test"},
			ReflectChildStatusOnParent: espalier.ReflectChild[*resources.Widget, *corev1.ConfigMap](condition),
			Conditions:                 []string{condition},
		}
	}
	var described []string
	espalier.Steps(literal("First", "ChildReady"), literal("Second", "Later")).Describe().Walk(
		func(_ string, d reconcilers.Description) { described = append(described, d.Conditions...) })
	if got := fmt.Sprint(described); got != "[ChildReady Later]" {
		t.Errorf("the tree describes the conditions %s, want [ChildReady Later]", got)
	}
}

func TestRetires(t *testing.T) {
	const yes = metav1.ConditionTrue
	given := widget.With(is("ChildReady", yes, "Succeeded", ""), is("Later", yes, "Succeeded", ""), is("Other", yes, "Because", ""),
		is("Ready", yes, "Ready", ""), about(3))
	kept := widget.With(is("ChildReady", yes, "Succeeded", ""), is("Other", yes, "Because", ""), is("Ready", yes, "Ready", ""), about(3))
	rtesting.RootTests{
		"one that an earlier release set": row(given.Object(), kept),
		"it is gone":                      row(kept.Object()),
	}.RunRoot(t, scheme, func(config reconcilers.Config) reconcile.Reconciler {
		return espalier.For(config, reporting("First", "ChildReady", nil)).Retires("Later")
	})

	err := espalier.For(reconcilers.Config{}, reporting("First", "ChildReady", nil)).Retires("ChildReady").Validate(t.Context())
	const want = `ResourceReconciler "Widget" retires the condition ChildReady, so node 0/First must not set it`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}
