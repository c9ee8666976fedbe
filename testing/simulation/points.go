package simulation

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation/internal/transport"
)

var most = flag.Int("simulation.faults", 200, "how many faults a story is told with, one at a time; 0 is all")

// stale is how late the events of a watch are that is late.
const stale = 2 * time.Minute

// RunFaults tells a story many times: once as [Run] does, and then with one fault at each request that the operator
// made, each in a subtest: the operator dies before the request or after it, the request fails, its answer is lost, a
// write conflicts, a list or a watch is told that its version is too old, a watch is cut or late. These are the same
// faults in each run. A story that the operator gets over has to hold with each of them: what it checks, it checks
// after [World.Rest].
//
// There are up to 200 faults, spread evenly over the story, or as many as the flag -simulation.faults says. A fault
// with which the story fails is printed as Go source for Options.Plan, and for the first three, what happened then.
//
// A story is told several times, also at the same time, so it makes its objects anew.
func RunFaults(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	first := attempt(t, options, story)
	if first.failed {
		t.Error(first.report())
		return
	}
	all := faultsAt(calls(first.log, options.actors()))
	tried := fault.Spread(all, *most)
	t.Logf("%d of %d faults", len(tried), len(all))
	var failed atomic.Int32
	for _, f := range tried {
		t.Run(title(f), func(t *testing.T) {
			t.Parallel()
			struck := options
			struck.Plan.Faults = append(slices.Clone(options.Plan.Faults), f)
			o := attempt(t, struck, story)
			switch {
			case !o.failed:
			case failed.Add(1) <= enough:
				t.Error(o.report())
			default:
				t.Error(o.summary())
			}
		})
	}
}

// title names a fault for a subtest, in whose name a slash would have a meaning.
func title(f Fault) string {
	return strings.ReplaceAll(fmt.Sprintf("%s %s%s #%d", f.Kind, f.Verb, f.Path, f.Nth), "/", ":")
}

// calls returns the requests of actors in a log. Of the watches of a kind, those are left out that begin again after
// the first two, for they are all alike.
func calls(log transport.Log, actors []string) []fault.Point {
	var made []fault.Point
	for _, e := range log.Entries {
		c := e.Call
		again := e.Note != "" || e.End != "" || c.Verb == fault.Watch && c.N > 2
		if !again && c.Verb != fault.Discover && slices.Contains(actors, c.Actor) {
			made = append(made, fault.Point{Call: c})
		}
	}
	return made
}

// oneByOne are the kinds of faults of [RunFaults]. To the operator, the others are much like Fails, and clients try
// again by themselves.
var oneByOne = []FaultKind{Fails, LosesAnswer, Conflicts, Expires, CutsWatch, DelaysWatch, DiesBefore, DiesAfter}

// faultsAt returns the faults that may strike calls.
func faultsAt(calls []fault.Point) []Fault {
	all := fault.Points(calls, oneByOne)
	for i := range all {
		if all[i].Kind == DelaysWatch {
			all[i].Delay = stale
		}
	}
	return all
}
