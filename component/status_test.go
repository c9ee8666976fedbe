package component

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestConditionOf(t *testing.T) {
	failure := errors.New("no such chart")
	tests := map[string]struct {
		situation facts
		want      condition
		status    metav1.ConditionStatus
	}{
		"suspended": {
			situation: facts{suspended: true},
			want:      condition{apis.ComponentPending, "Suspended", "Reconciliation is suspended"},
			status:    metav1.ConditionUnknown,
		},
		"the port of a connection is another one each time": {
			situation: facts{err: errors.New("read tcp 10.0.0.5:43210->10.96.0.1:443: read: connection reset by peer")},
			want:      condition{apis.ComponentError, "Error", "Read tcp 10.96.0.1:443: read: connection reset by peer"},
			status:    metav1.ConditionFalse,
		},
		"suspension does not hold up a deletion": {
			situation: facts{suspended: true, deleting: true, progress: "waiting for ConfigMap a/b"},
			want:      condition{apis.ComponentDeleting, "DeletionProcessing", "Waiting for ConfigMap a/b"},
			status:    metav1.ConditionUnknown,
		},
		"first seen": {
			situation: facts{recorded: true, first: true},
			want:      condition{apis.ComponentPending, "FirstSeen", "The objects are recorded"},
			status:    metav1.ConditionUnknown,
		},
		"restarting": {
			situation: facts{recorded: true, changed: true},
			want:      condition{apis.ComponentProcessing, "Restarting", "The objects have changed"},
			status:    metav1.ConditionUnknown,
		},
		"processing": {
			situation: facts{progress: "wave 1 of 2: 0 of 1 ready"},
			want:      condition{apis.ComponentProcessing, "Processing", "Wave 1 of 2: 0 of 1 ready"},
			status:    metav1.ConditionUnknown,
		},
		"timed out": {
			situation: facts{overdue: true, progress: "wave 1 of 2: 0 of 1 ready"},
			want:      condition{apis.ComponentError, "Timeout", "Timed out: wave 1 of 2: 0 of 1 ready"},
			status:    metav1.ConditionFalse,
		},
		"ready, however long it took": {
			situation: facts{done: true, overdue: true},
			want:      condition{apis.ComponentReady, "Ready", "All objects are as desired, and ready"},
			status:    metav1.ConditionTrue,
		},
		"retriable": {
			situation: facts{err: failure, retriable: true},
			want:      condition{apis.ComponentPending, "Retrying", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"retriable, timed out": {
			situation: facts{err: failure, retriable: true, overdue: true},
			want:      condition{apis.ComponentPending, "Timeout", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"retriable while deleting": {
			situation: facts{err: failure, retriable: true, overdue: true, deleting: true},
			want:      condition{apis.ComponentDeletionPending, "DeletionRetrying", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"error": {
			situation: facts{err: failure},
			want:      condition{apis.ComponentError, "Error", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"error, timed out": {
			situation: facts{err: failure, overdue: true},
			want:      condition{apis.ComponentError, "Timeout", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"error while deleting": {
			situation: facts{err: failure, overdue: true, deleting: true},
			want:      condition{apis.ComponentError, "Error", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"its cluster does not answer": {
			situation: facts{err: failure, retriable: true, unreachable: true, overdue: true},
			want:      condition{apis.ComponentPending, "ClusterUnreachable", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"its cluster does not answer while deleting": {
			situation: facts{err: failure, retriable: true, unreachable: true, deleting: true},
			want:      condition{apis.ComponentDeletionPending, "ClusterUnreachable", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"abandoned": {
			situation: facts{abandoning: "Gave up 1 object", deleting: true},
			want:      condition{apis.ComponentDeletionPending, "Abandoned", "Gave up 1 object"},
			status:    metav1.ConditionUnknown,
		},
		"deletion blocked": {
			situation: facts{deleting: true, blocked: true, progress: "CustomResourceDefinition foos: in use by Foo a/b"},
			want:      condition{apis.ComponentDeleting, "DeletionBlocked", "Deletion blocked: CustomResourceDefinition foos: in use by Foo a/b"},
			status:    metav1.ConditionUnknown,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := conditionOf(test.situation)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if status := conditionStatus(got.state); status != test.status {
				t.Errorf("the condition is %s, not %s", status, test.status)
			}
		})
	}
}

// The time of errors counts, and a component that was ready gets a fresh timer when it is not any more.
func TestComponentClock(t *testing.T) {
	start := time.Unix(1000, 0)
	timer := rolloutTimer{}.tick("a", false, false, start)
	if timer.since != start {
		t.Errorf("a roll-out that did not become ready at once began %v, not %v", timer.since, start)
	}
	if later := timer.tick("a", false, false, start.Add(time.Minute)); later != timer {
		t.Errorf("the timer moved: %v", later)
	}
	if changed := timer.tick("b", false, false, start.Add(time.Minute)); changed.since != start.Add(time.Minute) {
		t.Errorf("another roll-out began %v", changed.since)
	}
	ready := timer.tick("a", true, false, start.Add(time.Minute))
	if !ready.since.IsZero() || ready.digest != "a" {
		t.Errorf("what is ready is timed: %v", ready)
	}
	if unready := ready.tick("a", false, false, start.Add(time.Hour)); unready.since != start.Add(time.Hour) {
		t.Errorf("what was ready is timed from %v", unready.since)
	}
	if deleting := timer.tick("a", false, true, start); deleting != (rolloutTimer{}) {
		t.Errorf("a deletion is timed: %v", deleting)
	}
}

func TestComponentBackoff(t *testing.T) {
	longest := 10 * time.Second
	for tries := range 60 {
		want := longest
		switch {
		case tries < 5:
			want = 50 * time.Millisecond << tries
		case tries < 20:
			want = time.Second
		case tries < 50:
			want = 2 * time.Second
		}
		if got := backoffDelay(tries, longest); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
	var s resourceState
	for i, step := range []struct {
		reason  string
		changed bool
		want    int
	}{{"a", false, 0}, {"a", false, 1}, {"a", false, 2}, {"a", true, 0}, {"a", false, 1}, {"b", false, 0}, {"b", false, 1}} {
		if got := s.countWait(step.reason, step.changed); got != step.want {
			t.Errorf("step %d: %d tries, want %d", i, got, step.want)
		}
	}
}

func TestJittered(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 50 {
		got := jittered(time.Minute, fmt.Sprint(i))
		if got < time.Minute*101/100 || got > time.Minute*105/100 {
			t.Errorf("%v is not 1 to 5 percent more than a minute", got)
		}
		if again := jittered(time.Minute, fmt.Sprint(i)); again != got {
			t.Errorf("%v and %v for the same seed", got, again)
		}
		seen[got] = true
	}
	if len(seen) < 3 {
		t.Errorf("there are only %d different delays", len(seen))
	}
	if jittered(0, "x") != 0 {
		t.Error("no delay became one")
	}
}
