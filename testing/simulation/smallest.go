package simulation

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

var shrinking = flag.Duration("simulation.shrinking", 30*time.Second,
	"how long, in real time, a failing story or plan is made smaller; 0 is without an end")

// smallest makes a story smaller that failed: the steps, the plan, the steps again, and the resources. It returns the
// smallest that fails that it found in time.
func (x *explorer) smallest(t *testing.T, found told) told {
	t.Helper()
	until, tried := lastMoment(t, *shrinking), 0
	again := func(s script, plan Plan) bool {
		if isOver(until) {
			return false
		}
		tried++
		x.pulse.say("the story of %s is made smaller: %d were tried", t.Name(), tried)
		next := x.tell(t, s, plan)
		if next.failed {
			found = next
		}
		return next.failed
	}
	fewerSteps := func() {
		fault.Fewest(found.script, func(steps []step) bool { return again(steps, found.plan) })
	}
	again(found.script, Plan{})
	fewerSteps()
	plan.Shrink(found.plan, found.happened, func(p Plan) bool { return again(found.script, p) })
	fewerSteps()
	for i := 0; i < len(found.script); i++ {
		for x.simplify(i, found, again) {
		}
	}
	if isOver(until) {
		found.until = fmt.Sprintf(" in %v, see -simulation.shrinking", *shrinking)
	}
	return found
}

// simplify tries simpler resources in a step. It reports whether one of them fails, too.
func (x *explorer) simplify(i int, found told, again func(s script, plan Plan) bool) bool {
	if step := found.script[i]; step.verb != doCreate && step.verb != doReplace {
		return false
	}
	tried := 0
	for simpler := range x.generator.Smaller(found.script[i].obj) {
		if tried++; tried > 20 {
			return false
		}
		if again(found.script.with(i, simpler), found.plan) {
			return true
		}
	}
	return false
}

// with returns a script with another resource in a step.
func (s script) with(i int, obj *unstructured.Unstructured) script {
	other := slices.Clone(s)
	other[i].obj = obj
	return other
}
