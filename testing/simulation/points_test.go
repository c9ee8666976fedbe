package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

// TestByTurns has a call that is made often beside one that is made once.
func TestByTurns(t *testing.T) {
	t.Parallel()
	var all []Fault
	as := map[fault.Call]string{}
	add := func(c fault.Call, name string) {
		as[c] = name
		for _, kind := range []FaultKind{Fails, LosesAnswer, DiesBefore, DiesAfter} {
			all = append(all, fault.At(c, kind, 0))
		}
	}
	for n := range 50 {
		add(fault.Call{Verb: fault.Create, Path: fmt.Sprintf("/api/v1/pods/p-%d", n), N: 1}, "create Pod")
	}
	add(fault.Call{Verb: fault.Outside, Path: "unregister", N: 1}, "call unregister")
	sorted := byTurns(all, as)
	if len(sorted) != len(all) {
		t.Fatalf("%d faults of %d", len(sorted), len(all))
	}
	tried := map[string][]FaultKind{}
	for _, c := range sorted[:8] {
		tried[c.as] = append(tried[c.as], c.Kind)
	}
	for _, name := range []string{"create Pod", "call unregister"} {
		kinds := slices.Sorted(slices.Values(tried[name]))
		if want := []FaultKind{DiesAfter, DiesBefore, Fails, LosesAnswer}; !slices.Equal(kinds, want) {
			t.Errorf("the first eight faults of %s are %v, want %v", name, kinds, want)
		}
	}
	const want = "4 of 4 of call unregister, 196 of 200 of create Pod"
	left := slices.DeleteFunc(slices.Clone(sorted), func(c counted) bool { return c.as == "create Pod" && !c.again })
	if got := uncovered(sorted, left); got != want {
		t.Errorf("left out: %s, want %s", got, want)
	}
}

// TestNoFaultsOfEvents has RunFaults pass over requests that must not wait.
func TestNoFaultsOfEvents(t *testing.T) {
	t.Parallel()
	o := attempt(t, Options{Operator: polls}, func(w *World) {
		w.Create(newApp("one"))
		w.Pass(time.Hour)
	})
	o.must(t)
	made, _ := calls(o.log, []string{Operator})
	if len(made) == 0 {
		t.Error("the operator makes no calls")
	}
	for _, c := range made {
		if strings.Contains(c.Path, "/events/") {
			t.Errorf("faults strike %s %s", c.Verb, c.Path)
		}
	}
}
