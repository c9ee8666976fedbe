package faults_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

// shrink shrinks a plan with 50 faults that happened, and returns the code of the result and how many plans it tried.
func shrink(fails func(faults.Plan) bool) (string, int) {
	p := faults.FromSeed(7, faults.Options{Actors: []string{"operator"}})
	p.Clocks = []faults.Clock{{Actor: "operator", Ahead: time.Minute}}
	var happened []faults.Fault
	for i := range 50 {
		happened = append(happened, faults.At(call(faults.Get, fmt.Sprintf("/api/v1/nodes/%d", i), 1), faults.Fails, 0))
	}
	tries := 0
	smallest := faults.Shrink(p, happened, func(p faults.Plan) bool {
		tries++
		return fails(p)
	})
	return smallest.Code("faults"), tries
}

func strikes(p faults.Plan, nodes ...int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool {
		return p.Decide(call(faults.Get, fmt.Sprintf("/api/v1/nodes/%d", i), 1)).Fault.Sort == ""
	})
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fails func(faults.Plan) bool
		want  string
	}{
		"two faults": {
			func(p faults.Plan) bool { return strikes(p, 3, 40) },
			`faults.Plan{
	Faults: []faults.Fault{
		{Sort: faults.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/3"},
		{Sort: faults.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/40"},
	},
}`,
		},
		"a clock": {
			func(p faults.Plan) bool { return p.Ahead("operator") > 0 },
			`faults.Plan{
	Clocks: []faults.Clock{
		{Actor: "operator", Ahead: time.Minute},
	},
}`,
		},
		"a fault with what else the seed decides": {
			func(p faults.Plan) bool { return p.Seed == 7 && strikes(p, 3) },
			`faults.Plan{
	Seed: 7,
	Faults: []faults.Fault{
		{Sort: faults.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/3"},
	},
}`,
		},
		"nothing": {func(faults.Plan) bool { return true }, "faults.Plan{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, tries := shrink(row.fails)
			if got != row.want {
				t.Errorf("the smallest plan is %s", got)
			}
			if tries > 60 {
				t.Errorf("%d plans were tried", tries)
			}
		})
	}
}

func TestShrinkKeepsLatency(t *testing.T) {
	t.Parallel()
	p := faults.FromSeed(7, faults.Options{Actors: []string{"operator"}})
	watch := call(faults.Watch, "/api/v1/pods", 1)
	p.Chances = nil
	lag := p.Decide(watch).Lag
	smallest := faults.Shrink(p, nil, func(p faults.Plan) bool { return p.Decide(watch).Lag == lag })
	if smallest.Decide(watch).Lag != lag || len(smallest.Actors) != 1 {
		t.Errorf("the smallest plan is %v", smallest)
	}
}

// TestShrinkKeepsWhatDoesNotFailAgain has a failure that the faults alone do not lead to.
func TestShrinkKeepsWhatDoesNotFailAgain(t *testing.T) {
	t.Parallel()
	got, tries := shrink(func(p faults.Plan) bool { return len(p.Chances) > 0 })
	p := faults.FromSeed(7, faults.Options{Actors: []string{"operator"}})
	p.Clocks = []faults.Clock{{Actor: "operator", Ahead: time.Minute}}
	if got != p.Code("faults") || tries != 1 {
		t.Errorf("after %d tries, the plan is %s", tries, got)
	}
}
