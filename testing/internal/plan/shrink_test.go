package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

// shrink shrinks a plan with 50 faults that happened, and returns the code of the result and how many plans it tried.
func shrink(fails func(plan.Plan) bool) (string, int) {
	p := plan.FromSeed(7, plan.Options{Actors: []string{"operator"}})
	p.Clocks = []plan.Clock{{Actor: "operator", Ahead: time.Minute}}
	var happened []fault.Fault
	for i := range 50 {
		happened = append(happened, fault.At(call(fault.Get, fmt.Sprintf("/api/v1/nodes/%d", i), 1), fault.Fails, 0))
	}
	tries := 0
	smallest := plan.Shrink(p, happened, func(p plan.Plan) bool {
		tries++
		return fails(p)
	})
	return smallest.Code(), tries
}

func strikes(p plan.Plan, nodes ...int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool {
		return p.Decide(call(fault.Get, fmt.Sprintf("/api/v1/nodes/%d", i), 1)).Fault.Kind == ""
	})
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fails func(plan.Plan) bool
		want  string
	}{
		"two faults": {
			func(p plan.Plan) bool { return strikes(p, 3, 40) },
			`simulation.Plan{
	Faults: []simulation.Fault{
		{Kind: simulation.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/3"},
		{Kind: simulation.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/40"},
	},
}`,
		},
		"a clock": {
			func(p plan.Plan) bool { return p.Ahead("operator") > 0 },
			`simulation.Plan{
	Clocks: []simulation.Clock{
		{Actor: "operator", Ahead: time.Minute},
	},
}`,
		},
		"a fault with what else the seed decides": {
			func(p plan.Plan) bool { return p.Seed == 7 && strikes(p, 3) },
			`simulation.Plan{
	Seed: 7,
	Faults: []simulation.Fault{
		{Kind: simulation.Fails, Actor: "operator", Verb: "get", Path: "/api/v1/nodes/3"},
	},
}`,
		},
		"nothing": {func(plan.Plan) bool { return true }, "simulation.Plan{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, tries := shrink(row.fails)
			if got != row.want {
				t.Errorf("the smallest plan is %s\nwant %s", got, row.want)
			}
			if tries > 60 {
				t.Errorf("%d plans were tried, want at most 60", tries)
			}
		})
	}
}

func TestShrinkKeepsLatency(t *testing.T) {
	t.Parallel()
	p := plan.FromSeed(7, plan.Options{Actors: []string{"operator"}})
	watch := call(fault.Watch, "/api/v1/pods", 1)
	p.Chances = nil
	lag := p.Decide(watch).Lag
	smallest := plan.Shrink(p, nil, func(p plan.Plan) bool { return p.Decide(watch).Lag == lag })
	if smallest.Decide(watch).Lag != lag || len(smallest.Actors) != 1 {
		t.Errorf("the smallest plan is %v, want one actor and the lag %v", smallest, lag)
	}
}

// TestShrinkKeepsWhatDoesNotFailAgain has a failure that the faults alone do not lead to.
func TestShrinkKeepsWhatDoesNotFailAgain(t *testing.T) {
	t.Parallel()
	got, tries := shrink(func(p plan.Plan) bool { return len(p.Chances) > 0 })
	p := plan.FromSeed(7, plan.Options{Actors: []string{"operator"}})
	p.Clocks = []plan.Clock{{Actor: "operator", Ahead: time.Minute}}
	if got != p.Code() || tries != 1 {
		t.Errorf("after %d tries the plan is %s\nwant after 1\n%s", tries, got, p.Code())
	}
}
