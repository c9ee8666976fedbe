package simulation_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// pasted is what its Code returns, so that what Code returns can be compiled and is the plan.
var pasted = simulation.Plan{
	Seed:    7,
	Latency: 1500 * time.Millisecond,
	Chances: []simulation.Chance{
		{Kind: simulation.Refuses, OneIn: 100},
		{Kind: simulation.CutsWatch, OneIn: 8, Delay: time.Minute},
	},
	Calm:   time.Hour,
	Actors: []string{"operator", "operator-2"},
	Faults: []simulation.Fault{
		{Kind: simulation.LosesAnswer, Actor: "operator", Verb: "create", Path: "/api/v1/namespaces/*/configmaps/one"},
		{Kind: simulation.Throttles, Nth: 2, Times: 3, Delay: 5 * time.Second},
		{Kind: simulation.DiesAfter, Verb: "apply", Nth: 4},
	},
	Clocks: []simulation.Clock{
		{Actor: "operator", Ahead: -5 * time.Minute},
		{Actor: "operator-2", Ahead: 1234567 * time.Nanosecond},
	},
}

func TestCode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("plan_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if code := pasted.Code(); !strings.Contains(string(source), "\nvar pasted = "+code+"\n") {
		t.Errorf("the code is %s, want that of this file", code)
	}
	if code := (simulation.Plan{}).Code(); code != "simulation.Plan{}" {
		t.Errorf("the code is %s, want simulation.Plan{}", code)
	}
}
