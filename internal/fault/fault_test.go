package fault_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

func TestFaultString(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]fault.Fault{
		`DiesAfter("create ConfigMap ns/one")`:     {Kind: fault.DiesAfter, Path: "create ConfigMap ns/one"},
		`Fails("create ConfigMap ns/one-*", 2)`:    {Kind: fault.Fails, Path: "create ConfigMap ns/one-*", Nth: 2},
		`Stale("get ConfigMap ns/one")`:            {Kind: fault.Stale, Path: "get ConfigMap ns/one", Nth: 1},
		`Expires("operator list /api/v1/pods", 3)`: {Kind: fault.Expires, Actor: "operator", Verb: "list", Path: "/api/v1/pods", Nth: 3},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFaultEffect(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.Refuses, fault.Fails, fault.LosesAnswer, fault.Conflicts, fault.Throttles, fault.Expires, fault.CutsWatch,
		fault.DelaysWatch, fault.DiesBefore, fault.DiesAfter, fault.Restarts, fault.Stale,
		fault.UserDeletes,
	} {
		if effect := (fault.Fault{Kind: kind}).Effect(); effect == string(kind) {
			t.Errorf("the effect of %s is %q, want words", kind, effect)
		}
	}
	late := fault.Fault{Kind: fault.Throttles, Delay: 5 * time.Second}
	if got, want := late.Effect(), "too many requests, without effect, 5s"; got != want {
		t.Errorf("the effect with a delay is %q, want %q", got, want)
	}
}

func TestPointsOfUnknownCalls(t *testing.T) {
	t.Parallel()
	calls := []fault.Point{
		{Call: fault.Call{Verb: fault.List, Path: "/api/v1/pods", N: 1}},
		{Call: fault.Call{Verb: fault.Update, Path: "/api/v1/nodes/a", N: 2}},
	}
	got := fault.Points(calls, []fault.Kind{fault.Fails, fault.Conflicts, fault.Expires, fault.CutsWatch})
	want := []fault.Fault{
		fault.At(calls[0].Call, fault.Fails, 0), fault.At(calls[0].Call, fault.Expires, 0),
		fault.At(calls[1].Call, fault.Fails, 0), fault.At(calls[1].Call, fault.Conflicts, 0),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	items := []int{0, 1, 2, 3, 4, 5}
	for n, want := range map[int][]int{0: items, 1: {0}, 2: {0, 3}, 4: {0, 1, 3, 4}, 6: items, 9: items} {
		if got := fault.Spread(items, n); !slices.Equal(got, want) {
			t.Errorf("%d of %v: got %v, want %v", n, items, got, want)
		}
	}
}
