package apis_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

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
