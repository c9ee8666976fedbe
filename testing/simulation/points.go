package simulation

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation/internal/random"
	"github.com/espalier-dev/espalier/testing/simulation/internal/transport"
)

var most = flag.Int("simulation.faults", 200, "how many faults a story is told with, one at a time; 0 is all")

// stale is how late the events of a watch are that is late.
const stale = 2 * time.Minute

// RunFaults tells a story many times: once as [Run] does, and then with one fault at each request that the operator
// made, each in a subtest: the operator dies before the request or after it, the request fails, its answer is lost,
// somebody else writes the object first, a list or a watch is told that its version is too old, a watch is cut or late.
// If the story deletes a resource, the user also deletes it earlier, before each write: see [UserDeletes]. A story that
// does not hold either if this happens later, at rest, depends on the resource; the fault is skipped then.
//
// Calls of something outside of the cluster have faults if they are made with Call or HTTP of package testing.
//
// These are the same faults in each run. A story that the operator gets over has to hold with each of them: what it
// checks, it checks after [World.Rest].
//
// There are up to 200 faults, spread evenly over the story, or as many as the flag -simulation.faults says. Those that
// find most are first, and none begins after a minute, or after what -simulation.budget says, nor shortly before the
// deadline of the test binary: the test says then how many are left. A fault with which the story fails is printed as
// Go source for Options.Plan, and for the first three, what happened then.
//
// A story is told several times, also at the same time, so it makes its objects anew.
func RunFaults(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	first := attempt(t, options, story)
	if first.failed {
		t.Error(first.report())
		return
	}
	all := faultsAt(calls(first.log, options.actors()), lastDelete(first.log, options))
	p := newProgress(t, len(all), telling(fault.Spread(all, *most)))
	var failed atomic.Int32
	for _, f := range p.tried {
		t.Run(title(f), func(t *testing.T) {
			t.Parallel()
			defer p.end(t)
			p.begin(t)
			o := withFault(t, options, story, f)
			switch {
			case !o.failed:
			case f.Kind == UserDeletes && withFault(t, options, story, later(f)).failed:
				t.Skipf("the story does not hold either if the user deletes the resource %v later", calmly)
			case failed.Add(1) <= enough:
				t.Error(o.report())
			default:
				t.Error(o.summary())
			}
		})
	}
}

// withFault tells a story with one fault more.
func withFault(t *testing.T, options Options, story func(w *World), f Fault) outcome {
	t.Helper()
	options.Plan.Faults = append(slices.Clone(options.Plan.Faults), f)
	return attempt(t, options, story)
}

// later returns a fault that strikes when the operator is at rest.
func later(f Fault) Fault {
	f.Delay = calmly
	return f
}

// lastDelete returns when the story deleted something last.
func lastDelete(log transport.Log, options Options) time.Duration {
	var last time.Duration
	for _, e := range log.Entries {
		others := e.Call.Actor != cluster && !options.isOperator(e.Call.Actor)
		if others && e.Note == "" && e.Call.Verb == fault.Delete {
			last = e.At
		}
	}
	return last
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
var oneByOne = []FaultKind{
	Fails, LosesAnswer, Conflicts, Expires, CutsWatch, DelaysWatch, DiesBefore, DiesAfter, UserDeletes,
}

// faultsAt returns the faults that may strike calls. The user may delete a resource up to a time.
func faultsAt(calls []fault.Point, deletes time.Duration) []Fault {
	at := map[fault.Call]time.Duration{}
	for i := range calls {
		when := calls[i].At
		calls[i].At = 0
		at[calls[i].Call] = when
	}
	all := fault.Points(calls, oneByOne)
	all = slices.DeleteFunc(all, func(f Fault) bool { return f.Kind == UserDeletes && at[f.Call()] >= deletes })
	for i := range all {
		if all[i].Kind == DelaysWatch {
			all[i].Delay = stale
		}
	}
	return all
}

// telling returns faults in the order in which they are tried: those first that find most, and else in an order that
// has nothing to do with that of the story.
func telling(all []Fault) []Fault {
	rank := func(f Fault) int {
		if f.Verb != fault.Outside && !fault.Writes(f.Verb) {
			return 2
		}
		if slices.Contains([]FaultKind{UserDeletes, DiesAfter, LosesAnswer, Conflicts}, f.Kind) {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(random.Hash(a.String()), random.Hash(b.String())))
	})
	return sorted
}
