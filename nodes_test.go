package espalier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var settings = stash.New[*corev1.ConfigMap]("test.espalier.dev/settings")

func settingsKey(_ context.Context, w *resources.Widget) types.NamespacedName {
	if asks(w, "none") {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: w.Namespace, Name: "settings"}
}

func TestReads(t *testing.T) {
	given := rtesting.NewFixture(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}})
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, scheme)}
	missing := is("Found", metav1.ConditionFalse, "NotFound", "ConfigMap default/settings does not exist")

	read := func() *espalier.Read[*resources.Widget, *corev1.ConfigMap] {
		return espalier.Reads("Settings", settings, settingsKey).Reports("Found")
	}
	run(t, tests{
		"the object is there": {
			Resource:            widget.Object(),
			GivenObjects:        []object{given},
			ExpectTracks:        tracks,
			ExpectResource:      widget.With(is("Found", metav1.ConditionTrue, "Found", "")).Object(),
			ExpectStashedValues: map[stash.Key]any{settings.Key(): given.Object()},
		},
		"there is nothing to read": {
			Resource:       widget.With(with("none")).Object(),
			ExpectResource: widget.With(with("none"), is("Found", metav1.ConditionTrue, "NotDesired", "")).Object(),
		},
		"the object is missing": {
			Resource:       widget.Object(),
			ExpectTracks:   tracks,
			ExpectResource: widget.With(missing).Object(),
			ShouldErr:      true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if err != reconcilers.ErrHaltUntilEvent {
					t.Errorf("the error is %v, want %v", err, reconcilers.ErrHaltUntilEvent)
				}
			},
		},
		"the object cannot be read": {
			Resource:     widget.Object(),
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap")},
			ExpectTracks: tracks,
			ShouldErr:    true,
		},
		"the resource is terminating": {Resource: terminating.Object()},
	}, func() node { return read() })
	run(t, tests{
		"an optional object is missing": {
			Resource:     widget.Object(),
			ExpectTracks: tracks,
			ExpectResource: widget.With(is("Found", metav1.ConditionTrue, "NotFound",
				"ConfigMap default/settings does not exist")).Object(),
		},
	}, func() node { return read().Optional() })
}

// runs returns a function that counts its calls, and returns what the resource asks for.
func runs(calls *int) func(context.Context, *resources.Widget) error {
	return func(_ context.Context, w *resources.Widget) error {
		*calls++
		switch {
		case asks(w, "not ready"):
			return outOfStock
		case asks(w, "error"):
			return errBoom
		}
		return nil
	}
}

func TestRuns(t *testing.T) {
	calls := 0
	called := func(want int) func(*testing.T, reconcilers.Result, error) {
		return func(t *testing.T, _ reconcilers.Result, _ error) {
			if calls != want {
				t.Errorf("called %d times, expected %d", calls, want)
			}
		}
	}
	const minute = time.Minute
	run(t, tests{
		"done": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(is("Registered", metav1.ConditionTrue, "Succeeded", "")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: 2 * minute},
			Verify:         called(1),
		},
		"not ready": {
			Resource: widget.With(with("not ready")).Object(),
			ExpectResource: widget.With(with("not ready"),
				is("Registered", metav1.ConditionFalse, "NoColor", "there is no color in stock")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: minute},
			Verify:         called(1),
		},
		"an error": {
			Resource: widget.With(with("error")).Object(),
			ExpectResource: widget.With(with("error"),
				is("Registered", metav1.ConditionFalse, "Failed", "boom")).Object(),
			ShouldErr: true,
			Verify:    called(1),
		},
		"the resource is terminating": {Resource: terminating.Object(), Verify: called(0)},
	}, func() node {
		calls = 0
		return espalier.Runs("Registration", runs(&calls)).Reports("Registered").Every(2 * minute)
	})
}

func TestRunsFinalizes(t *testing.T) {
	const finalizer = "test.espalier.dev/registry"
	registered := widget.With(func(w *resources.Widget) { w.Finalizers = []string{finalizer} })
	removed := terminating.With(func(w *resources.Widget) {
		w.Finalizers = append([]string{finalizer}, w.Finalizers...)
	})
	patched := event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "test.espalier.dev/registry"`)
	patch := func(body string) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Group: "test.espalier.dev", Kind: "Widget", Namespace: "default", Name: "gadget",
			PatchType: types.MergePatchType, Patch: []byte(body),
		}}
	}
	finalized := 0
	verify := func(want int) func(*testing.T, reconcilers.Result, error) {
		return func(t *testing.T, _ reconcilers.Result, _ error) {
			if finalized != want {
				t.Errorf("finalized %d times, expected %d", finalized, want)
			}
		}
	}
	run(t, tests{
		"the finalizer comes first": {
			Resource: widget.Object(),
			ExpectResource: widget.With(func(w *resources.Widget) {
				w.Finalizers, w.ResourceVersion = []string{finalizer}, "1000"
			}).Object(),
			ExpectPatches: patch(`{"metadata":{"finalizers":["` + finalizer + `"],"resourceVersion":"999"}}`),
			ExpectEvents:  patched,
		},
		"the finalizer is there": {Resource: registered.Object(), Verify: verify(0)},
		"the resource is terminating": {
			Resource: removed.Object(),
			ExpectResource: terminating.With(func(w *resources.Widget) {
				w.ResourceVersion = "1000"
			}).Object(),
			ExpectPatches: patch(`{"metadata":{"finalizers":["test.espalier.dev/other"],"resourceVersion":"999"}}`),
			ExpectEvents:  patched,
			Verify:        verify(1),
		},
		"what the finalizer guards was never made": {Resource: terminating.Object(), Verify: verify(0)},
		"not ready to be finalized": {
			Resource:       removed.With(with("not ready")).Object(),
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
			Verify:         verify(1),
		},
		"an error keeps the finalizer": {
			Resource:  removed.With(with("error")).Object(),
			ShouldErr: true,
			Verify:    verify(1),
		},
	}, func() node {
		finalized = 0
		return espalier.Runs("Registration", func(context.Context, *resources.Widget) error { return nil }).
			Finalizes(finalizer, runs(&finalized))
	})

	// Point 14: the node of an earlier version is kept only for the resources that have its finalizer.
	none := is("Registered", metav1.ConditionTrue, "NotDesired", "")
	run(t, tests{
		"absent: the finalizer goes from a resource that lives": {
			Resource: registered.Object(),
			ExpectResource: widget.With(none, func(w *resources.Widget) {
				w.Finalizers, w.ResourceVersion = []string{}, "1000"
			}).Object(),
			ExpectPatches: patch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`),
			ExpectEvents:  patched,
			Verify:        verify(1),
		},
		"absent: and from one that is terminating": {
			Resource: removed.Object(),
			ExpectResource: terminating.With(func(w *resources.Widget) {
				w.ResourceVersion = "1000"
			}).Object(),
			ExpectPatches: patch(`{"metadata":{"finalizers":["test.espalier.dev/other"],"resourceVersion":"999"}}`),
			ExpectEvents:  patched,
			Verify:        verify(1),
		},
		"absent: the finalizer is not there": {
			Resource:       widget.Object(),
			ExpectResource: widget.With(none).Object(),
			Verify:         verify(0),
		},
		"absent: an error keeps the finalizer": {
			Resource: registered.With(with("error")).Object(),
			ExpectResource: registered.With(with("error"),
				is("Registered", metav1.ConditionFalse, "Failed", "boom")).Object(),
			ShouldErr: true,
			Verify:    verify(1),
		},
	}, func() node {
		finalized = 0
		return espalier.Runs[*resources.Widget]("Registration", nil).
			Finalizes(finalizer, runs(&finalized)).Reports("Registered").Absent()
	})
}

func TestWhen(t *testing.T) {
	calls := 0
	inner := func() node { return espalier.Runs("Registration", runs(&calls)).Reports("Registered") }
	verify := func(want int) func(*testing.T, reconcilers.Result, error) {
		return func(t *testing.T, _ reconcilers.Result, _ error) {
			if calls != want {
				t.Errorf("called %d times, expected %d", calls, want)
			}
		}
	}
	registered := is("Registered", metav1.ConditionTrue, "Succeeded", "")
	open := is("Open", metav1.ConditionTrue, "Ready", "")

	run(t, tests{
		"it holds": {
			Resource:       widget.With(with("host")).Object(),
			ExpectResource: widget.With(with("host"), registered).Object(),
			Verify:         verify(1),
		},
		"it does not hold": {
			Resource:       widget.With(open, registered).Object(),
			ExpectResource: widget.With(open).Object(),
			Verify:         verify(0),
		},
	}, func() node {
		calls = 0
		return espalier.When("Host", func(_ context.Context, w *resources.Widget) bool { return asks(w, "host") }, inner())
	})
	run(t, tests{
		"the condition is true": {
			Resource:       widget.With(open).Object(),
			ExpectResource: widget.With(open, registered).Object(),
			Verify:         verify(1),
		},
		"the condition is not true": {
			Resource: widget.With(is("Open", metav1.ConditionFalse, "Late", "")).Object(),
			ExpectResource: widget.With(is("Open", metav1.ConditionFalse, "Late", ""),
				is("Registered", metav1.ConditionUnknown, "Waiting", "waiting until Open is True")).Object(),
			Verify: verify(0),
		},
	}, func() node {
		calls = 0
		return espalier.WhenTrue("Open", inner())
	})
}

// A node below When has to clean up, whatever the function says.
func TestWhenOnDeletion(t *testing.T) {
	run(t, tests{
		"the child goes": {
			Resource:      terminating.Object(),
			GivenObjects:  []object{configMap.With(exists)},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
	}, func() node {
		never := func(context.Context, *resources.Widget) bool { return false }
		return espalier.When("Never", never, espalier.Owns("ConfigMap", desiredConfigMap))
	})
}

// A text that differs in each request must not wake the controller for ever.
func TestRunsKeepsTheTextOfAnError(t *testing.T) {
	attempts := 0
	n := espalier.Runs("Registration", func(context.Context, *resources.Widget) error {
		attempts++
		return fmt.Errorf("attempt %d failed", attempts)
	}).Reports("Registered")
	w := widget.Object()
	config := (&rtesting.ExpectConfig{Scheme: scheme, GivenObjects: []object{widget}}).Config()
	start, known := time.Now(), &resourcestate.State{}
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "attempt 1 failed"}, {0, "attempt 2 failed"}, {0, "attempt 3 failed"}, {0, "attempt 4 failed"},
		{time.Second, "attempt 4 failed"}, {59 * time.Second, "attempt 4 failed"}, {61 * time.Second, "attempt 7 failed"},
	} {
		ctx := apis.StashGeneration(rtime.StashNow(t.Context(), start.Add(step.after)), w.Generation)
		ctx = reconcilers.StashOriginalConfig(reconcilers.StashConfig(ctx, config), config)
		if _, err := n.Reconcile(resourcestate.NewContext(ctx, known), w); err == nil {
			t.Error("no error is returned")
		}
		if got := reconcilers.GetCondition(w, "Registered").Message; got != step.want {
			t.Errorf("after %v the condition says %q, expected %q", step.after, got, step.want)
		}
	}
}
