package faults_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

// pasted is what its Code returns, so that what Code returns can be compiled and is the plan.
var pasted = faults.Plan{
	Seed:    7,
	Latency: 1500 * time.Millisecond,
	Chances: []faults.Chance{
		{Sort: faults.Refuses, OneIn: 100},
		{Sort: faults.CutsWatch, OneIn: 8, Delay: time.Minute},
	},
	Calm:   time.Hour,
	Actors: []string{"operator", "operator-2"},
	Faults: []faults.Fault{
		{Sort: faults.LosesAnswer, Actor: "operator", Verb: "create", Path: "/api/v1/namespaces/*/configmaps/one"},
		{Sort: faults.Throttles, Nth: 2, Times: 3, Delay: 5 * time.Second},
		{Sort: faults.DiesAfter, Verb: "apply", Nth: 4},
	},
	Clocks: []faults.Clock{
		{Actor: "operator", Ahead: -5 * time.Minute},
		{Actor: "operator-2", Ahead: 1234567 * time.Nanosecond},
	},
}

func TestCode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("print_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if code := pasted.Code("faults"); !strings.Contains(string(source), "\nvar pasted = "+code+"\n") {
		t.Errorf("the code is %s", code)
	}
	if code := (faults.Plan{}).Code("simulation"); code != "simulation.Plan{}" {
		t.Errorf("the code is %s", code)
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	const want = `seed 7 for operator, operator-2
latency up to 1.5s
the clock of operator is 5m0s behind
the clock of operator-2 is 1.234567ms ahead
one in 100: the connection is refused
one in 8: the watch is cut, up to 1m0s
calm after 1h0m0s
operator create /api/v1/namespaces/*/configmaps/one: the answer is lost
anybody any verb any path #2-4: too many requests, without effect, 5s
anybody apply any path #4: the actor dies after it`
	if got := pasted.String(); got != want {
		t.Errorf("the plan is\n%s", got)
	}
	if got := (faults.Plan{}).String(); got != "nothing goes wrong" {
		t.Errorf("the plan is %s", got)
	}
	for _, s := range faults.Sorts {
		if effect := (faults.Fault{Sort: s}).Effect(); effect == string(s) {
			t.Errorf("%s has no words", s)
		}
	}
}
