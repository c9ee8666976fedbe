package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// begins has a component whose fences have a margin of a minute remove its type, or itself, and returns until when the
// first run waits. No run waits itself: the clock of the requests stands.
func (r *rig) begins(deleting bool) (until time.Time) {
	r.Helper()
	r.margin, r.now = time.Minute, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	report, err := r.run(deleting)
	if err != nil || len(report.Plan.Obstacles) != 1 || report.Plan.Obstacles[0].Kind != plan.ObstacleWaiting {
		r.Fatalf("the error is %v and the obstacles are %+v, want none and one that is waited for", err,
			report.Plan.Obstacles)
	}
	until = report.Plan.Recheck
	if left := until.Sub(r.now); left < time.Minute {
		r.Fatalf("the margin is over after %v, want a minute at least", left)
	}
	r.assertClosed()
	return until
}

// assertClosed fails unless the type is there and has its fence.
func (r *rig) assertClosed() {
	r.Helper()
	if live := r.live(); live.DeletionTimestamp != nil || !foreign.Fenced(live, prefix+"/"+foreign.AnnotationFence) {
		r.Fatalf("the definition is deleted at %v and has the annotations %v, want it fenced", live.DeletionTimestamp,
			live.Annotations)
	}
}

// assertRemoved fails unless a run at that time deletes the type.
func (r *rig) assertRemoved(deleting bool, at time.Time) {
	r.Helper()
	r.now = at
	if _, err := r.run(deleting); err != nil || r.writes == 0 {
		r.Fatalf("there are %d writes: %v, want the definition deleted", r.writes, err)
	}
	r.converge(deleting)
}

// The margin of a fence is waited for from request to request, and another process goes on where the one before ended.
func TestMarginIsNoPartOfARequest(t *testing.T) {
	t.Parallel()
	for kind, deleting := range map[string]bool{"Pruned": false, "Whole": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kind, manifest.Options{})
			r.converge(false, r.crd)
			until := r.begins(deleting)
			r.now = until.Add(-time.Nanosecond)
			report, err := r.run(deleting)
			if err != nil || r.writes != 0 || !report.Plan.Recheck.Equal(until) {
				t.Errorf("in the margin there are %d writes and the next request is at %v: %v, want none and %v",
					r.writes, report.Plan.Recheck, err, until)
			}
			r.assertClosed()
			r.assertRemoved(deleting, until)
		})
	}
}

// A type that is desired again while its margin runs loses the fence at once, and the next removal begins anew.
func TestMarginOfATypeThatIsDesiredAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Wanted", manifest.Options{})
	r.converge(false, r.crd)
	first := r.begins(false)
	if _, err := r.run(false, r.crd); err != nil || r.lifts != 1 {
		t.Errorf("the fence was lifted %d times: %v, want 1", r.lifts, err)
	}
	r.assertOpen()
	r.now = first
	report, err := r.run(false)
	if left := report.Plan.Recheck.Sub(first); err != nil || left < time.Minute {
		t.Errorf("the margin of the next removal is over after %v: %v, want a minute at least", left, err)
	}
	r.assertClosed()
}

// An instance of others that is found when the margin is over takes the fence off.
func TestMarginFindsAnInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Found", manifest.Options{})
	r.converge(false, r.crd)
	until := r.begins(true)
	// As if it had been on its way when the fence was put up.
	createInSpite(r)
	r.now = until
	report, err := r.run(true)
	if err != nil || len(report.Plan.Obstacles) != 1 ||
		!strings.Contains(report.Plan.Obstacles[0].Message, "in use by Found late") {
		t.Errorf("the error is %v and the obstacles are %+v, want the instance of others", err, report.Plan.Obstacles)
	}
	r.assertOpen()
}

// What comes before a deletion is called once, however many requests the margin takes, and again after it was blocked.
func TestMarginAndBeforeDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Hooked", manifest.Options{})
	r.converge(false, r.crd)
	calls := 0
	r.memory, r.beforeDelete = &engine.Memory{}, func(context.Context) error { calls++; return nil }
	until := r.begins(true)
	r.assertRemoved(true, until)
	if calls != 1 {
		t.Errorf("BeforeDelete was called %d times, want once", calls)
	}
}

// A policy that has come into force refuses to record the margin. The process remembers it.
func TestMarginThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Blank", manifest.Options{})
	r.converge(false, r.crd)
	r.closing = true
	until := r.begins(false)
	if record := r.live().Annotations[prefix+"/"+foreign.AnnotationFence]; !strings.HasPrefix(record, "fenced/") {
		t.Fatalf("the record is %q, want that of a fence without a proof", record)
	}
	r.assertRemoved(false, until)
}

// createInSpite creates an instance in spite of the fence, which it takes off and puts back.
func createInSpite(r *rig) {
	r.Helper()
	live := r.live()
	fenced := live.Spec.DeepCopy()
	live.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
	if err := r.Update(r.Context(), live); err != nil {
		r.Fatal(err)
	}
	controlplanetest.Eventually(r, "no instance can be created", func(ctx context.Context) error {
		late := r.theirs()
		late.SetName("late")
		// The creation of an instance of a new type is held up, so its answer may be lost.
		return client.IgnoreAlreadyExists(r.Create(ctx, late))
	})
	live = r.live()
	live.Spec = *fenced
	if err := r.Update(r.Context(), live); err != nil {
		r.Fatal(err)
	}
}
