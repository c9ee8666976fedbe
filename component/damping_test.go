package component_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDampedStatus: an object that is not ready and that others change several times a second costs few writes of the
// status. The newest text is written when it may be shown.
func TestDampedStatus(t *testing.T) {
	house, _, _ := newHouse()
	house.SetObjects(deployment("web", "0", 2))
	o := newOperated(t, assembling(), house, nil)
	writes := 0
	reconcile := func(after time.Duration) time.Duration {
		t.Helper()
		result, err := o.reconcile(t, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range o.writes {
			if strings.HasPrefix(write, "update Assembly/status") {
				writes++
			}
		}
		return result.RequeueAfter
	}
	for range 4 {
		reconcile(0)
	}
	web := &appsv1.Deployment{}
	o.get(t, "web", web)
	web.Status.ObservedGeneration = web.Generation
	if err := o.client.Status().Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	var again time.Duration
	touch := func(i int) {
		t.Helper()
		web := &appsv1.Deployment{}
		web.Name = "web"
		o.change(t, web, func() { web.Spec.RevisionHistoryLimit = new(int32(i)) })
		again = reconcile(100 * time.Millisecond)
	}
	for i := range 600 {
		touch(i + 1)
	}
	if writes > 9 {
		t.Errorf("the status is written %d times in the first minute, want at most 9", writes)
	}
	if again <= 0 || again > time.Minute {
		t.Errorf("the request is repeated after %v, want at most a minute", again)
	}
	reconcile(again)
	o.get(t, "web", web)
	said := meta.FindStatusCondition(o.house(t).Status.Conditions, "Ready").Message
	if newest := fmt.Sprintf("generation %d", web.Generation); !strings.Contains(said, newest) {
		t.Errorf("the condition says %q after that, want %q in it", said, newest)
	}
}

// flipping is a component whose Deployment becomes ready and not ready in turn.
type flipping struct {
	*operated
	t *testing.T
	// shown are the times of the writes of the status, since the beginning.
	shown []time.Duration
	// again is when the last request asked to come back.
	again time.Time
	start time.Time
}

func newFlipping(t *testing.T) *flipping {
	t.Helper()
	house, _, _ := newHouse()
	house.SetObjects(deployment("web", "0", 2))
	f := &flipping{operated: newOperated(t, assembling(), house, nil), t: t}
	f.untilIdle(t)
	f.flip(true)
	f.untilIdle(t)
	f.start = f.now
	f.says("at the beginning", metav1.ConditionTrue)
	return f
}

func (f *flipping) says(when string, status metav1.ConditionStatus) {
	f.t.Helper()
	condition := meta.FindStatusCondition(f.house(f.t).Status.Conditions, "Ready")
	if condition.Status != status {
		f.t.Errorf("%s the condition is %s: %s, want %s", when, condition.Status, condition.Message, status)
	}
}

// flip makes the Deployment ready or not, as its controller.
func (f *flipping) flip(ready bool) {
	f.t.Helper()
	web := &appsv1.Deployment{}
	f.get(f.t, "web", web)
	replicas := *web.Spec.Replicas
	available := replicas
	if !ready {
		available--
	}
	web.Status = appsv1.DeploymentStatus{
		ObservedGeneration: web.Generation, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: available, AvailableReplicas: available,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := f.client.Status().Update(f.t.Context(), web); err != nil {
		f.t.Fatal(err)
	}
}

// look makes one request.
func (f *flipping) look(after time.Duration) {
	f.t.Helper()
	result, err := f.reconcile(f.t, after)
	if err != nil {
		f.t.Fatal(err)
	}
	f.again = f.now.Add(result.RequeueAfter)
	for _, write := range f.writes {
		if strings.HasPrefix(write, "update Assembly/status") {
			f.shown = append(f.shown, f.now.Sub(f.start))
		}
	}
}

// TestFlippingReadiness: an object that becomes ready and not ready in turn costs few writes of the status. That it is
// not ready is shown at once, and what it is in the end is shown within about a minute.
func TestFlippingReadiness(t *testing.T) {
	for _, every := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprintf("each %v, at last %t", every, last), func(t *testing.T) {
				f := newFlipping(t)
				f.flip(false)
				f.look(every)
				f.says("at first", metav1.ConditionUnknown)
				ready := false
				for f.now.Sub(f.start) < 3*time.Minute {
					ready = !ready
					f.flip(ready)
					f.look(every)
				}
				for minute := range 3 {
					n := 0
					for _, at := range f.shown {
						if at/time.Minute == time.Duration(minute) {
							n++
						}
					}
					if n > 9 {
						t.Errorf("the status is written %d times in minute %d, want at most 9 times", n, minute+1)
					}
				}
				t.Logf("the status is written %d times in 3 minutes", len(f.shown))
				f.flip(last)
				f.look(every)
				end := f.now
				for f.now.Sub(end) < 70*time.Second {
					f.look(f.again.Sub(f.now))
				}
				want := metav1.ConditionUnknown
				if last {
					want = metav1.ConditionTrue
				}
				f.says("in the end", want)
				if shown := f.start.Add(f.shown[len(f.shown)-1]).Sub(end); shown > 65*time.Second {
					t.Errorf("what the object is in the end is shown after %v, want after about a minute", shown)
				}
				// Long after, a change is shown at once.
				f.now = f.now.Add(time.Hour)
				f.flip(!last)
				f.look(0)
				if at := f.shown[len(f.shown)-1]; f.start.Add(at) != f.now {
					t.Error("a change after an hour is not shown at once, want it shown")
				}
			})
		}
	}
}

// TestReadyAgainAfterFlips: what is rolled out anew is shown at once, however often readiness has changed before.
func TestReadyAgainAfterFlips(t *testing.T) {
	f := newFlipping(t)
	for i := range 20 {
		f.flip(i%2 == 1)
		f.look(time.Second)
	}
	f.flip(false)
	f.look(time.Second)
	house := f.operated.house(t)
	f.change(t, house, func() { house.SetObjects(deployment("web", "0", 3)) })
	f.look(time.Second)
	f.look(0)
	f.says("when it is rolled out", metav1.ConditionUnknown)
	f.flip(true)
	f.look(time.Second)
	f.says("once it is ready", metav1.ConditionTrue)
}
