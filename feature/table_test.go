package feature

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write docs/states.md")

const (
	grace      = 10 * time.Minute
	generation = int64(3)
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// factsOf returns facts in which an event happens.
func factsOf(e event) facts {
	f := facts{now: began.Add(time.Minute), generation: generation, grace: grace}
	of := func(state, grade apis.State) {
		f.summary = summary{state: state, message: "the message", grade: grade, gradeMessage: "the message"}
	}
	of(apis.StateHealthy, "")
	withdraw, suspend := reconcilers.Withdraw, reconcilers.Suspend
	switch e {
	case gateFails:
		f.gate, f.summary = "the message", summary{}
	case withdrawalFails:
		f.supervision = withdraw
		of(apis.StateError, "")
	case withdraws:
		f.supervision = withdraw
		of(apis.StateDisabling, "")
		f.summary.left, f.summary.leftMessage = 1, "the message"
	case withdrawn:
		f.supervision = withdraw
		of(apis.StateDisabled, "")
	case prerequisiteMissing:
		f.prerequisite, f.summary = "the message", summary{}
	case suspensionFails:
		f.supervision = suspend
		of(apis.StateError, "")
	case suspensionPending:
		f.supervision = suspend
		of(apis.StatePendingSuspension, "")
	case suspends:
		f.supervision = suspend
		of(apis.StateSuspending, "")
	case suspensionUnknown:
		f.supervision = suspend
		of(apis.StateUnknown, "")
	case suspended:
		f.supervision = suspend
		of(apis.StateSuspended, "")
	case fails:
		of(apis.StateError, "")
	case notReported:
		of(apis.StateUnknown, "")
	case notHealthy:
		of(apis.StateUpdating, apis.StateDown)
	case notGraded:
		f.now = began.Add(grace)
		of(apis.StateTaskRunning, "")
	case gradedDegraded:
		f.now = began.Add(grace)
		of(apis.StateFailing, apis.StateDegraded)
	case gradedDown:
		f.now = began.Add(grace)
		of(apis.StateFailing, apis.StateDown)
	}
	return f
}

func TestEachRowOfTheTable(t *testing.T) {
	for _, row := range machine {
		for _, phase := range phases {
			t.Run(fmt.Sprintf("%s/%s", phase, row.event), func(t *testing.T) {
				for _, before := range []bool{false, true} {
					record := apis.FeatureStatus{
						Name: "Till", Condition: "TillReady", Phase: phase, Since: metav1.NewTime(began),
						Generation: generation, Passed: before,
					}
					f := factsOf(row.event)
					d := decide(record, f)
					if row.from != nil && !slices.Contains(row.from, phase) {
						if d.event == row.event {
							t.Fatalf("the event %q happens, but not by the table, want it to be that of no other row",
								row.event)
						}
						continue
					}
					checkRow(t, row, record, f, d)
				}
			})
		}
	}
}

func checkRow(t *testing.T, row transition, record apis.FeatureStatus, f facts, d decision) {
	t.Helper()
	want := decision{event: row.event, status: row.status, reason: row.reason, message: d.message, record: record}
	if want.reason == "" {
		want.reason = f.summary.state
	}
	if row.phase != "" {
		want.record.Phase = row.phase
	}
	if row.passed != nil {
		want.record.Passed = *row.passed
	}
	if want.record.Phase != record.Phase {
		want.record.Since = metav1.NewTime(f.now)
	}
	if row.requeues {
		want.requeueAfter = want.record.Since.Add(grace).Sub(f.now)
	}
	if diff := cmp.Diff(want, d, cmp.AllowUnexported(decision{})); diff != "" {
		t.Errorf("the decision differs (-expected, +actual):\n%s", diff)
	}
	if empty := d.message == ""; empty != (d.status == metav1.ConditionTrue) {
		t.Errorf("the message is %q with the status %s, want one exactly if it is not true", d.message, d.status)
	}
}

// The table has no event twice, and names all of them.
func TestTableIsComplete(t *testing.T) {
	seen := map[event]bool{}
	for _, row := range machine {
		if seen[row.event] {
			t.Errorf("%q has two rows, want one", row.event)
		}
		seen[row.event] = true
		if !strings.Contains(Table(), "| "+string(row.event)+" |") {
			t.Errorf("%q is not printed, want it in the table", row.event)
		}
		if row.reason != "" && !slices.Contains(priorities, row.reason) {
			t.Errorf("%s has no priority, want one", row.reason)
		}
	}
}

func TestTimeOfPhases(t *testing.T) {
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	progressing := apis.FeatureStatus{
		Phase: apis.FeatureProgressing, Since: metav1.NewTime(began), Generation: generation, Passed: true,
	}
	for name, tc := range map[string]struct {
		record       apis.FeatureStatus
		change       func(*facts)
		reason       apis.State
		since        time.Time
		requeueAfter time.Duration
	}{
		"an hour of waiting uses up no grace": {
			record: apis.FeatureStatus{Phase: apis.FeatureWaiting, Since: metav1.NewTime(began),
				Generation: generation},
			change: func(f *facts) { f.now = at(3600) },
			reason: apis.StateUpdating, since: at(3600), requeueAfter: grace,
		},
		"an hour of suspension uses up no grace": {
			record: apis.FeatureStatus{Phase: apis.FeatureSuspended, Since: metav1.NewTime(began),
				Generation: generation},
			change: func(f *facts) { f.now = at(3600) },
			reason: apis.StateUpdating, since: at(3600), requeueAfter: grace,
		},
		"a new generation does not start again": {
			record: progressing,
			change: func(f *facts) { f.now, f.generation = at(3600), generation+1 },
			reason: apis.StateDown, since: began,
		},
		"a new generation has what is left": {
			record: progressing,
			change: func(f *facts) { f.now, f.generation = at(60), generation+1 },
			reason: apis.StateUpdating, since: began, requeueAfter: grace - time.Minute,
		},
		"a new generation of a healthy feature": {
			record: apis.FeatureStatus{Phase: apis.FeatureHealthy, Since: metav1.NewTime(began), Generation: generation,
				Passed: true},
			change: func(f *facts) { f.now, f.generation = at(3600), generation+1 },
			reason: apis.StateUpdating, since: at(3600), requeueAfter: grace,
		},
		"a new phase starts at a whole second": {
			record: apis.FeatureStatus{},
			change: func(f *facts) { f.now = at(0.75) },
			reason: apis.StateUpdating, since: began, requeueAfter: grace - 750*time.Millisecond,
		},
		"a moment before the end": {
			record: progressing,
			change: func(f *facts) { f.now = at(599.75) },
			reason: apis.StateUpdating, since: began, requeueAfter: 250 * time.Millisecond,
		},
		"at the end": {record: progressing, change: func(f *facts) { f.now = at(600) }, reason: apis.StateDown,
			since: began},
		"long after it": {record: progressing, change: func(f *facts) { f.now = at(6000) }, reason: apis.StateDown,
			since: began},
		"the end is whole": {
			record: progressing,
			change: func(f *facts) { f.now, f.grace = at(2), 1500*time.Millisecond },
			reason: apis.StateDown, since: began,
		},
		"the end is the next whole second": {
			record: progressing,
			change: func(f *facts) { f.now, f.grace = at(1.75), 1500*time.Millisecond },
			reason: apis.StateUpdating, since: began, requeueAfter: 250 * time.Millisecond,
		},
		"without a grace period there is no end": {
			record: progressing,
			change: func(f *facts) { f.now, f.grace = at(6000), 0 },
			reason: apis.StateUpdating, since: began,
		},
		"a job that runs is not down": {
			record: progressing,
			change: func(f *facts) { f.now, f.summary = at(6000), summary{state: apis.StateTaskRunning} },
			reason: apis.StateTaskRunning, since: began,
		},
		"an error is shown at once": {
			record: progressing,
			change: func(f *facts) { f.summary.state = apis.StateError },
			reason: apis.StateError, since: began,
		},
		"a failure is shown at once": {
			record: progressing,
			change: func(f *facts) { f.summary.state = apis.StateFailing },
			reason: apis.StateFailing, since: began, requeueAfter: grace - time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := factsOf(notHealthy)
			tc.change(&f)
			d := decide(tc.record, f)
			if d.reason != tc.reason || !d.record.Since.Time.Equal(tc.since) || d.requeueAfter != tc.requeueAfter {
				t.Errorf("the reason is %s since %s, back after %s, want %s since %s, back after %s", d.reason,
					d.record.Since, d.requeueAfter, tc.reason, tc.since, tc.requeueAfter)
			}
			want := f.generation
			if tc.since.Equal(tc.record.Since.Time) {
				want = tc.record.Generation
			}
			if d.record.Generation != want {
				t.Errorf("the generation is %d, want %d, that for which the phase began", d.record.Generation, want)
			}
		})
	}
}

// TestStatesAreDocumented compares docs/states.md with the table and the priorities. With -update it writes them there.
func TestStatesAreDocumented(t *testing.T) {
	const path = "../docs/states.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var listed strings.Builder
	for i, state := range priorities {
		_, _ = fmt.Fprintf(&listed, "%d. `%s`\n", i+1, state)
	}
	documented := string(page)
	for begin, want := range map[string]string{"| phase | event |": Table(), "1. `Error`": listed.String()} {
		at := strings.Index(documented, "\n\n"+begin) + 2
		if at < 2 {
			t.Fatalf("want a line that begins with %q in %s, after an empty one", begin, path)
		}
		written, _, _ := strings.Cut(documented[at:], "\n\n")
		written += "\n"
		if diff := cmp.Diff(want, written); diff != "" && !*update {
			t.Errorf("the page differs from the table (-table +page), want it the same, "+
				"by go test ./feature -run TestStatesAreDocumented -update:\n%s",
				diff)
		}
		documented = strings.Replace(documented, written, want, 1)
	}
	if *update {
		if err := os.WriteFile(path, []byte(documented), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
