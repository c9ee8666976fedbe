package reconcilers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestJudgeComponent(t *testing.T) {
	failure := errors.New("no such chart")
	tests := map[string]struct {
		situation componentSituation
		want      componentVerdict
		status    metav1.ConditionStatus
	}{
		"suspended": {
			situation: componentSituation{suspended: true},
			want:      componentVerdict{apis.ComponentPending, "Suspended", "Reconciliation is suspended"},
			status:    metav1.ConditionUnknown,
		},
		"suspension does not hold up a deletion": {
			situation: componentSituation{suspended: true, deleting: true, progress: "waiting for ConfigMap a/b"},
			want:      componentVerdict{apis.ComponentDeleting, "DeletionProcessing", "Waiting for ConfigMap a/b"},
			status:    metav1.ConditionUnknown,
		},
		"first seen": {
			situation: componentSituation{recorded: true, first: true},
			want:      componentVerdict{apis.ComponentPending, "FirstSeen", "The objects are recorded"},
			status:    metav1.ConditionUnknown,
		},
		"restarting": {
			situation: componentSituation{recorded: true, changed: true},
			want:      componentVerdict{apis.ComponentProcessing, "Restarting", "The objects have changed"},
			status:    metav1.ConditionUnknown,
		},
		"processing": {
			situation: componentSituation{progress: "wave 1 of 2: 0 of 1 ready"},
			want:      componentVerdict{apis.ComponentProcessing, "Processing", "Wave 1 of 2: 0 of 1 ready"},
			status:    metav1.ConditionUnknown,
		},
		"timed out": {
			situation: componentSituation{overdue: true, progress: "wave 1 of 2: 0 of 1 ready"},
			want:      componentVerdict{apis.ComponentError, "Timeout", "Timed out: wave 1 of 2: 0 of 1 ready"},
			status:    metav1.ConditionFalse,
		},
		"ready, however long it took": {
			situation: componentSituation{done: true, overdue: true},
			want:      componentVerdict{apis.ComponentReady, "Ready", "All objects are as desired, and ready"},
			status:    metav1.ConditionTrue,
		},
		"retriable": {
			situation: componentSituation{err: failure, retriable: true},
			want:      componentVerdict{apis.ComponentPending, "Retrying", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"retriable, timed out": {
			situation: componentSituation{err: failure, retriable: true, overdue: true},
			want:      componentVerdict{apis.ComponentPending, "Timeout", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"retriable while deleting": {
			situation: componentSituation{err: failure, retriable: true, overdue: true, deleting: true},
			want:      componentVerdict{apis.ComponentDeletionPending, "DeletionRetrying", "No such chart"},
			status:    metav1.ConditionUnknown,
		},
		"error": {
			situation: componentSituation{err: failure},
			want:      componentVerdict{apis.ComponentError, "Error", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"error, timed out": {
			situation: componentSituation{err: failure, overdue: true},
			want:      componentVerdict{apis.ComponentError, "Timeout", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"error while deleting": {
			situation: componentSituation{err: failure, overdue: true, deleting: true},
			want:      componentVerdict{apis.ComponentError, "Error", "No such chart"},
			status:    metav1.ConditionFalse,
		},
		"deletion blocked": {
			situation: componentSituation{deleting: true, blocked: true, progress: "CustomResourceDefinition foos: in use by Foo a/b"},
			want:      componentVerdict{apis.ComponentDeleting, "DeletionBlocked", "Deletion blocked: CustomResourceDefinition foos: in use by Foo a/b"},
			status:    metav1.ConditionUnknown,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := judgeComponent(test.situation)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if status := conditionStatus(got.state); status != test.status {
				t.Errorf("the condition is %s, not %s", status, test.status)
			}
		})
	}
}

// The time of errors counts, and a component that was ready gets a fresh clock when it is not any more (pitfall G-23).
func TestG23ComponentClock(t *testing.T) {
	start := time.Unix(1000, 0)
	clock := componentClock{}.tick("a", false, false, start)
	if clock.since != start {
		t.Errorf("a roll-out that did not become ready at once began %v, not %v", clock.since, start)
	}
	if later := clock.tick("a", false, false, start.Add(time.Minute)); later != clock {
		t.Errorf("the clock moved: %v", later)
	}
	if changed := clock.tick("b", false, false, start.Add(time.Minute)); changed.since != start.Add(time.Minute) {
		t.Errorf("another roll-out began %v", changed.since)
	}
	ready := clock.tick("a", true, false, start.Add(time.Minute))
	if !ready.since.IsZero() || ready.digest != "a" {
		t.Errorf("what is ready is timed: %v", ready)
	}
	if unready := ready.tick("a", false, false, start.Add(time.Hour)); unready.since != start.Add(time.Hour) {
		t.Errorf("what was ready is timed from %v", unready.since)
	}
	if deleting := clock.tick("a", false, true, start); deleting != (componentClock{}) {
		t.Errorf("a deletion is timed: %v", deleting)
	}
}

// T17 of the specification of the component engine.
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
		if got := componentBackoff(tries, longest); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
	var m componentMemory
	for i, step := range []struct {
		activity string
		changed  bool
		want     int
	}{{"a", false, 0}, {"a", false, 1}, {"a", false, 2}, {"a", true, 0}, {"a", false, 1}, {"b", false, 0}, {"b", false, 1}} {
		if got := m.again(step.activity, step.changed); got != step.want {
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

func TestLimited(t *testing.T) {
	if got := limited("short", 10); got != "short" {
		t.Errorf("got %q", got)
	}
	got := limited(strings.Repeat("ü", 100), 50)
	if len(got) > 50 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q of %d bytes", got, len(got))
	}
}
