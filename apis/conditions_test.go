package apis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
	rtime "github.com/espalier-dev/espalier/time"
)

var (
	earlier = metav1.NewTime(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC))
	set     = apis.NewLivingConditionSet("B", "A")
)

// request returns the context of a request at now, plus a fraction of a second that the API would not store.
func request(t *testing.T) context.Context {
	return rtime.StashNow(t.Context(), now.Add(789*time.Millisecond))
}

// conditions parses one condition per line, "Type Status Reason [message]", all with the given transition time.
func conditions(at metav1.Time, lines ...string) []metav1.Condition {
	var out []metav1.Condition
	for _, line := range lines {
		fields := append(strings.SplitN(line, " ", 4), "")
		out = append(out, metav1.Condition{
			Type: fields[0], Status: metav1.ConditionStatus(fields[1]), Reason: fields[2], Message: fields[3],
			LastTransitionTime: at,
		})
	}
	return out
}

// lines is the reverse of conditions, without the time.
func lines(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		out = append(out, strings.TrimSpace(strings.Join([]string{c.Type, string(c.Status), c.Reason, c.Message}, " ")))
	}
	return out
}

func TestTheHappyConditionFollows(t *testing.T) {
	type manager = apis.ConditionManager
	tests := map[string]struct {
		given []string
		do    func(manager)
		want  []string
	}{
		"initialised": {
			nil,
			func(m manager) { m.InitializeConditions() },
			[]string{"A Unknown Initializing", "B Unknown Initializing", "Ready Unknown Initializing"},
		},
		"initialised where happy, a new dependent is taken for True": {
			[]string{"A True Done", "Ready True Ready"},
			func(m manager) { m.InitializeConditions() },
			[]string{"A True Done", "B True Initializing", "Ready True Ready"},
		},
		"initialised, what is there stays": {
			[]string{"A False Broken why", "Ready False Broken why"},
			func(m manager) { m.InitializeConditions() },
			[]string{"A False Broken why", "B Unknown Initializing", "Ready False Broken why"},
		},
		"one of two is True": {
			[]string{"A Unknown Initializing", "B Unknown Waiting for it", "Ready Unknown Initializing"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B Unknown Waiting for it", "Ready Unknown Waiting for it"},
		},
		"all are True": {
			[]string{"A Unknown Initializing", "B True Done", "Ready Unknown Initializing"},
			func(m manager) { m.MarkTrue("A", "Done", "%d of %d", 2, 2) },
			[]string{"A True Done 2 of 2", "B True Done", "Ready True Ready"},
		},
		"one is False": {
			[]string{"A Unknown Initializing", "B True Done", "Ready Unknown Initializing"},
			func(m manager) { m.MarkFalse("A", "Broken", "because of %q", "x") },
			[]string{`A False Broken because of "x"`, "B True Done", `Ready False Broken because of "x"`},
		},
		"False beats Unknown": {
			[]string{"A False Broken why", "B True Done", "Ready False Broken why"},
			func(m manager) { m.MarkUnknown("B", "Waiting", "") },
			[]string{"A False Broken why", "B Unknown Waiting", "Ready False Broken why"},
		},
		"Unknown beats True": {
			[]string{"A True Done", "B True Done", "Ready True Ready"},
			func(m manager) { m.MarkUnknown("A", "Waiting", "for %s", "it") },
			[]string{"A Unknown Waiting for it", "B True Done", "Ready Unknown Waiting for it"},
		},
		"the last one marked speaks for all that are False": {
			[]string{"A False BrokenA why A", "B True Done", "Ready False BrokenA why A"},
			func(m manager) { m.MarkFalse("B", "BrokenB", "why B") },
			[]string{"A False BrokenA why A", "B False BrokenB why B", "Ready False BrokenB why B"},
		},
		"the last one marked speaks for all that are False, also if it is not the first in the order of the set": {
			[]string{"A True Done", "B False BrokenB why B", "Ready False BrokenB why B"},
			func(m manager) { m.MarkFalse("A", "BrokenA", "why A") },
			[]string{"A False BrokenA why A", "B False BrokenB why B", "Ready False BrokenA why A"},
		},
		"the last one marked speaks for all that are Unknown": {
			[]string{"B Unknown WaitingB", "Ready Unknown WaitingB"},
			func(m manager) { m.MarkUnknown("A", "WaitingA", "") },
			[]string{"A Unknown WaitingA", "B Unknown WaitingB", "Ready Unknown WaitingA"},
		},
		"marked Unknown after initialisation": {
			nil,
			func(m manager) { m.InitializeConditions(); m.MarkUnknown("A", "NotFound", "there is no %s", "a") },
			[]string{"A Unknown NotFound there is no a", "B Unknown Initializing", "Ready Unknown NotFound there is no a"},
		},
		"marked Unknown, then another one": {
			nil,
			func(m manager) {
				m.InitializeConditions()
				m.MarkUnknown("A", "NotFound", "")
				m.MarkUnknown("B", "Waiting", "")
			},
			[]string{"A Unknown NotFound", "B Unknown Waiting", "Ready Unknown Waiting"},
		},
		"marked Unknown without initialisation": {
			nil,
			func(m manager) { m.MarkUnknown("A", "NotFound", "") },
			[]string{"A Unknown NotFound", "Ready Unknown NotFound"},
		},
		"recovered while another is Unknown": {
			[]string{"A False Broken why", "B Unknown Waiting", "Ready False Broken why"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B Unknown Waiting", "Ready Unknown Waiting"},
		},
		"recovered while another is False": {
			[]string{"A False BrokenA", "B False BrokenB", "Ready False BrokenB"},
			func(m manager) { m.MarkTrue("B", "Done", "") },
			[]string{"A False BrokenA", "B True Done", "Ready False BrokenA"},
		},
		"unsure again": {
			[]string{"A False Broken why", "B True Done", "Ready False Broken why"},
			func(m manager) { m.MarkUnknown("A", "Waiting", "") },
			[]string{"A Unknown Waiting", "B True Done", "Ready Unknown Waiting"},
		},
		"a dependent that is True does not add a happy condition": {
			nil,
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done"},
		},
		"dependents that are all True add a happy condition": {
			[]string{"B True Done"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B True Done", "Ready True Ready"},
		},
		"recovered while another is missing": {
			[]string{"A False Broken why", "Ready False Broken why"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "Ready Unknown Initializing"},
		},
		"unsure again while another is False": {
			[]string{"A False BrokenA", "B False BrokenB", "Ready False BrokenA"},
			func(m manager) { m.MarkUnknown("A", "Waiting", "") },
			[]string{"A Unknown Waiting", "B False BrokenB", "Ready False BrokenB"},
		},
		"another condition changes nothing": {
			[]string{"A True Done", "B True Done", "Ready True Ready"},
			func(m manager) { m.MarkFalse("Other", "Broken", ""); m.MarkUnknown("Another", "Waiting", "") },
			[]string{"A True Done", "Another Unknown Waiting", "B True Done", "Other False Broken", "Ready True Ready"},
		},
		"the happy condition by hand": {
			[]string{"A True Done", "B True Done", "Ready True Ready"},
			func(m manager) { m.MarkFalse("Ready", "Paused", "by hand") },
			[]string{"A True Done", "B True Done", "Ready False Paused by hand"},
		},
		"the happy condition by hand, against dependents that are all True": {
			[]string{"A True Done", "B True Done", "Ready False Paused"},
			func(m manager) { m.MarkTrue("Ready", "Resumed", "by hand") },
			[]string{"A True Done", "B True Done", "Ready True Ready"},
		},
		"the happy condition by hand, against a dependent that is False": {
			[]string{"A True Done", "B False Broken why", "Ready False Broken why"},
			func(m manager) { m.MarkUnknown("Ready", "Waiting", "") },
			[]string{"A True Done", "B False Broken why", "Ready False Broken why"},
		},
		"the happy condition by hand, another dependent is True": {
			[]string{"A Unknown Waiting", "B Unknown Initializing", "Ready False Paused by hand"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B Unknown Initializing", "Ready False Paused by hand"},
		},
		"the happy condition by hand, another dependent is False": {
			[]string{"A False Broken", "B False Broken", "Ready False Paused by hand"},
			func(m manager) { m.MarkUnknown("A", "Waiting", ""); m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B False Broken", "Ready False Paused by hand"},
		},
		"the happy condition by hand, then all dependents are True": {
			[]string{"A Unknown Waiting", "B True Done", "Ready False Paused by hand"},
			func(m manager) { m.MarkTrue("A", "Done", "") },
			[]string{"A True Done", "B True Done", "Ready True Ready"},
		},
		"stored as given": {
			[]string{"A True Done", "B True Done", "Ready True Ready"},
			func(m manager) { m.SetCondition(metav1.Condition{Type: "A", Status: "False", Reason: "Broken"}) },
			[]string{"A False Broken", "B True Done", "Ready True Ready"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: conditions(earlier, tc.given...)}
			m := set.ManageWithContext(request(t), status)
			tc.do(m)
			if diff := cmp.Diff(tc.want, lines(status.Conditions)); diff != "" {
				t.Errorf("conditions (-want, +got):\n%s", diff)
			}
			if got, want := m.IsHappy(), strings.Contains(strings.Join(tc.want, ";"), "Ready True"); got != want {
				t.Errorf("want happy %t, got %t", want, got)
			}
		})
	}
}

// The first dependent in the order of the set that is not True is one that was not marked yet.
func TestOneThatRecoversGivesWayToOneThatWasMarked(t *testing.T) {
	three := apis.NewLivingConditionSet("C", "B", "A")
	tests := map[string]struct {
		given []string
		want  string
	}{
		"Unknown":       {[]string{"A False Broken", "B Unknown Waiting for it", "C Unknown Initializing"}, "Ready Unknown Waiting for it"},
		"C is missing":  {[]string{"A False Broken", "B Unknown Waiting for it"}, "Ready Unknown Waiting for it"},
		"B is missing":  {[]string{"A False Broken", "C Unknown Waiting for it"}, "Ready Unknown Waiting for it"},
		"False":         {[]string{"A False Broken", "B False Refused why", "C Unknown Waiting"}, "Ready False Refused why"},
		"none":          {[]string{"A False Broken", "B Unknown Initializing", "C Unknown Initializing"}, "Ready Unknown Initializing"},
		"first of both": {[]string{"A False Broken", "B Unknown Second", "C Unknown First"}, "Ready Unknown First"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: conditions(earlier, append(tc.given, "Ready False Broken")...)}
			three.ManageWithContext(request(t), status).MarkTrue("A", "Done", "")
			if got := lines([]metav1.Condition{*status.GetCondition("Ready")}); got[0] != tc.want {
				t.Errorf("got %q, want %q", got[0], tc.want)
			}
		})
	}
}

func TestConditionSets(t *testing.T) {
	tests := map[string]struct {
		set  apis.ConditionSet
		want []string
	}{
		"living": {
			apis.NewLivingConditionSet("A"),
			[]string{"A True Done", "Ready True Ready"},
		},
		"living with reason": {
			apis.NewLivingConditionSetWithHappyReason("AllGood", "A"),
			[]string{"A True Done", "Ready True AllGood"},
		},
		"batch": {
			apis.NewBatchConditionSet("A"),
			[]string{"A True Done", "Succeeded True Succeeded"},
		},
		"batch with reason": {
			apis.NewBatchConditionSetWithHappyReason("Finished", "A"),
			[]string{"A True Done", "Succeeded True Finished"},
		},
		"repeated dependents": {
			apis.NewLivingConditionSet("A", "Ready", "A"),
			[]string{"A True Done", "Ready True Ready"},
		},
		"without dependents": {
			apis.NewLivingConditionSet(),
			[]string{"A True Done", "Ready Unknown Initializing"},
		},
		"zero value": {
			apis.ConditionSet{},
			[]string{"A True Done", "Ready Unknown Initializing"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{}
			m := tc.set.ManageWithContext(request(t), status)
			m.InitializeConditions()
			m.MarkTrue("A", "Done", "")
			if diff := cmp.Diff(tc.want, lines(status.Conditions)); diff != "" {
				t.Errorf("conditions (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutDependentsTheHappyConditionIsMarkedByHand(t *testing.T) {
	status := &apis.Status{}
	m := apis.NewLivingConditionSet().ManageWithContext(request(t), status)
	for _, step := range []struct {
		mark func(string, string, string, ...any)
		want string
	}{
		{m.MarkTrue, "Ready True Reason message"},
		{m.MarkUnknown, "Ready Unknown Reason message"},
		{m.MarkFalse, "Ready False Reason message"},
	} {
		step.mark(apis.ConditionReady, "Reason", "message")
		if diff := cmp.Diff([]string{step.want}, lines(status.Conditions)); diff != "" {
			t.Errorf("conditions (-want, +got):\n%s", diff)
		}
	}
}

// counted counts how often the conditions are replaced.
type counted struct {
	apis.Status
	writes int
}

func (c *counted) SetConditions(conditions []metav1.Condition) {
	c.writes++
	c.Status.SetConditions(conditions)
}

func TestL10TransitionTimesAreReadFromTheRequest(t *testing.T) {
	status := &apis.Status{}
	m := set.ManageWithContext(request(t), status)
	m.InitializeConditions()
	m.SetCondition(metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, LastTransitionTime: earlier})
	for _, c := range status.Conditions {
		if !c.LastTransitionTime.Equal(&now) {
			t.Errorf("%s: want the time of the request in whole seconds, %s; got %s", c.Type, now, c.LastTransitionTime)
		}
	}
}

func TestTransitionTimesMoveOnlyWithTheStatus(t *testing.T) {
	tests := map[string]struct {
		do   func(apis.ConditionManager)
		want metav1.Time
	}{
		"nothing changes":     {func(m apis.ConditionManager) { m.MarkTrue("A", "Done", "well") }, earlier},
		"the reason changes":  {func(m apis.ConditionManager) { m.MarkTrue("A", "Finished", "well") }, earlier},
		"the message changes": {func(m apis.ConditionManager) { m.MarkTrue("A", "Done", "very well") }, earlier},
		"the status changes":  {func(m apis.ConditionManager) { m.MarkFalse("A", "Done", "well") }, now},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: conditions(earlier, "A True Done well", "B True Done", "Ready True Ready")}
			tc.do(set.ManageWithContext(request(t), status))
			for _, c := range status.Conditions {
				want := tc.want
				if c.Type == "B" {
					want = earlier
				}
				if !c.LastTransitionTime.Equal(&want) {
					t.Errorf("%s: want transition at %s, got %s", c.Type, want, c.LastTransitionTime)
				}
			}
		})
	}
}

func TestL1MarkingWhatIsMarkedWritesNothing(t *testing.T) {
	status := &counted{Status: apis.Status{
		Conditions: conditions(earlier, "A True Done", "B True Done", "Ready True Ready"),
	}}
	m := set.ManageWithContext(request(t), status)
	m.InitializeConditions()
	m.MarkTrue("A", "Done", "")
	m.MarkTrue("B", "Done", "")
	m.SetCondition(conditions(now, "A True Done")[0])
	if err := m.ClearCondition("Absent"); err != nil {
		t.Error(err)
	}
	if status.writes != 0 {
		t.Errorf("want no write, got %d", status.writes)
	}
}

func TestConditionsHandedOutBeforeDoNotChange(t *testing.T) {
	status := &apis.Status{Conditions: conditions(earlier, "A True Done", "B True Done", "Ready True Ready", "X True Extra")}
	before := status.Conditions
	m := set.ManageWithContext(request(t), status)
	copied := m.GetCondition("A")
	copied.Reason = "Changed"

	m.MarkFalse("A", "Broken", "")
	if err := m.ClearCondition("X"); err != nil {
		t.Error(err)
	}
	want := []string{"A True Done", "B True Done", "Ready True Ready", "X True Extra"}
	if diff := cmp.Diff(want, lines(before)); diff != "" {
		t.Errorf("conditions (-want, +got):\n%s", diff)
	}
}

func TestObservedGeneration(t *testing.T) {
	tests := map[string]struct {
		generation int64
		given      int64
		want       int64
	}{
		"that of the request":                      {generation: 3, want: 3},
		"none where the request is not":            {want: 0},
		"as given":                                 {given: 2, want: 2},
		"as given rather than that of the request": {generation: 3, given: 2, want: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := &apis.Status{Conditions: conditions(earlier, "A True Done")}
			ctx := apis.StashGeneration(request(t), tc.generation)
			m := set.ManageWithContext(ctx, status)
			m.SetCondition(metav1.Condition{
				Type: "A", Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: tc.given,
			})
			if got := m.GetCondition("A").ObservedGeneration; got != tc.want {
				t.Errorf("want generation %d, got %d", tc.want, got)
			}
			if got := apis.RetrieveGeneration(ctx); got != tc.generation {
				t.Errorf("want generation %d from the context, got %d", tc.generation, got)
			}
		})
	}
}

func TestAllConditionsOfARequestObserveItsGeneration(t *testing.T) {
	status := &apis.Status{}
	m := set.ManageWithContext(apis.StashGeneration(request(t), 1), status)
	m.InitializeConditions()
	m.MarkTrue("A", "Done", "")
	m.MarkTrue("B", "Done", "")

	m = set.ManageWithContext(apis.StashGeneration(request(t), 2), status)
	m.InitializeConditions()
	m.MarkTrue("A", "Done", "")

	got := map[string]int64{}
	for _, c := range status.Conditions {
		got[c.Type] = c.ObservedGeneration
	}
	want := map[string]int64{"A": 2, "B": 1, "Ready": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed generations (-want, +got):\n%s", diff)
	}
	if got := apis.RetrieveGeneration(t.Context()); got != 0 {
		t.Errorf("want generation 0 without one, got %d", got)
	}
}

func TestClearCondition(t *testing.T) {
	status := &apis.Status{Conditions: conditions(earlier, "A True Done", "Other True Done", "Ready True Ready")}
	m := set.ManageWithContext(request(t), status)
	for _, terminal := range []string{"A", "B", "Ready"} {
		err := m.ClearCondition(terminal)
		if want := "Clearing terminal conditions not implemented"; err == nil || err.Error() != want {
			t.Errorf("%s: want error %q, got %v", terminal, want, err)
		}
	}
	if err := m.ClearCondition("Other"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"A True Done", "Ready True Ready"}, lines(status.Conditions)); diff != "" {
		t.Errorf("conditions (-want, +got):\n%s", diff)
	}
}

func TestL7WithoutAStatusNothingHappens(t *testing.T) {
	m := set.ManageWithContext(request(t), nil)
	m.InitializeConditions()
	m.MarkTrue("A", "", "")
	m.MarkFalse("A", "", "")
	m.MarkUnknown("A", "", "")
	m.SetCondition(metav1.Condition{})
	if m.IsHappy() || m.GetCondition("A") != nil || m.ClearCondition("A") != nil {
		t.Error("want an unhappy manager without conditions")
	}
}

func TestManageUsesTheWallClock(t *testing.T) {
	status := &apis.Status{}
	before := time.Now().Truncate(time.Second)
	set.Manage(status).InitializeConditions()
	if got := status.GetCondition("Ready").LastTransitionTime; got.Time.Before(before) || got.After(time.Now()) {
		t.Errorf("want the present, got %s", got)
	}
}

func BenchmarkSteadyMarks(b *testing.B) {
	status := &apis.Status{Conditions: conditions(earlier, "A True Done", "B True Done", "Ready True Ready")}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		m := set.ManageWithContext(ctx, status)
		m.InitializeConditions()
		m.MarkTrue("A", "Done", "")
		m.MarkTrue("B", "Done", "")
	}
}
