package simulation

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/plan"
)

var (
	seeds = flag.Int("simulation.seeds", 20, "how many seeds a story is told with")
	seed  = flag.Uint64("simulation.seed", 0, "the first seed a story is told with")
)

// enough is how many failing plans of a story are reported.
const enough = 3

// RunSeeds tells a story many times: once as [Run] does, and then under plans that are drawn from seeds, each in a
// subtest. What a seed draws concerns the operator: latency, failing requests, cut and stale watches, its death,
// restarts of the API server. A story that the operator gets over has to hold under all of them: what it checks, it
// checks after [World.Rest].
//
// There are 20 seeds, or as many as the flag -simulation.seeds says, from the one that -simulation.seed says. A plan
// that fails is made smaller, until nothing can be left out or -simulation.shrinking is over, and is printed as Go
// source for Options.Plan. Three failing seeds are reported; after that, no more are tried.
//
// A story is told several times, also at the same time, so it makes its objects anew.
func RunSeeds(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	if !attempt(t, options, story).holds(t) {
		return
	}
	p := newPulse(t)
	eachSeed(t, p, func(t *testing.T, n uint64) bool {
		drawn := options
		drawn.Plan = plan.FromSeed(n, plan.Options{Actors: options.actors()})
		o := attempt(t, drawn, story)
		if o.failed {
			t.Error(smallest(t, p, drawn, o, story))
		} else if o.untold != "" {
			t.Skip(o.untold)
		}
		return o.failed
	})
}

// eachSeed runs a function for each seed in a subtest, until it has reported often enough that it failed.
func eachSeed(t *testing.T, p *pulse, fails func(t *testing.T, n uint64) bool) {
	t.Helper()
	var failed, ended atomic.Int32
	for n := *seed; n < *seed+uint64(*seeds); n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			t.Parallel()
			if failed.Load() >= enough {
				t.Skipf("%d seeds have failed", enough)
			}
			if fails(t, n) {
				failed.Add(1)
			}
			p.say("%d of %d seeds, of which %d fail", ended.Add(1), *seeds, failed.Load())
		})
	}
}

// smallest makes a plan smaller with which a story failed, and reports how the story fails with it.
func smallest(t *testing.T, p *pulse, options Options, failed outcome, story func(w *World)) string {
	last, again := failed, false
	until, tried := lastMoment(t, *shrinking), 0
	plan.Shrink(failed.plan, failed.happened, func(next Plan) bool {
		if isOver(until) {
			return false
		}
		tried++
		p.say("the plan of %s is made smaller: %d were tried", t.Name(), tried)
		smaller := options
		smaller.Plan = next
		o := attempt(t, smaller, story)
		if o.failed {
			last, again = o, true
		}
		return o.failed
	})
	if !again {
		return "The story failed with the plan below, and not again with the faults that happened. It depends on " +
			"the order in which goroutines run, too: GOMAXPROCS=1 makes this order the same in most runs.\n\n" +
			failed.report()
	}
	return last.report()
}
