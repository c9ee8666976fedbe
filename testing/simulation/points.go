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
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/random"
	"github.com/espalier-dev/espalier/testing/internal/transport"
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
// There are up to 200 faults, or as many as the flag -simulation.faults says. Requests of one verb, kind and
// subresource are one call, and so are calls outside of the cluster of one name. The calls are tried by turns, each
// first with one fault of each kind and then with those of its repetitions; in each turn, the faults that find most are
// first. No fault begins after a minute, or after what -simulation.budget says, nor shortly before the deadline of the
// test binary. The test names the calls whose faults are left out, and the flag that has them tried. A fault with which
// the story fails is printed as Go source for Options.Plan, and for the first three, what happened then. Events that
// recorders write have no faults.
//
// A fault is skipped if it shows nothing: the story ended without a failure before it had deleted the resource that the
// user deletes, or before its end, or the fault did not happen, as the request was not made or there was nothing to
// delete. The test says how many these are.
//
// A story is told several times, also at the same time, so it makes its objects anew.
func RunFaults(t *testing.T, options Options, story func(w *World)) {
	t.Helper()
	first := attempt(t, options, story)
	if !first.holds(t) {
		return
	}
	made, as := calls(first.log, options.actors())
	p := newProgress(t, byTurns(faultsAt(made, lastDelete(first.log, options)), as), *most)
	var failed atomic.Int32
	for _, c := range p.tried {
		f := c.Fault
		t.Run(title(f), func(t *testing.T) {
			t.Parallel()
			defer p.end(t)
			p.begin(t, c)
			o := withFault(t, options, story, f)
			switch {
			case !o.failed && o.untold != "":
				p.showsNothing(t, o.untold)
			case !o.failed && !slices.Contains(o.happened, f):
				p.showsNothing(t, "the fault did not happen: the operator did not make the request this time")
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

// calls returns the requests of actors in a log, with what each is counted as. Of the watches of a kind, those are left
// out that begin again after the first two, for they are all alike.
func calls(log transport.Log, actors []string) (made []fault.Point, as map[fault.Call]string) {
	as = map[fault.Call]string{}
	for _, e := range log.Entries {
		c := e.Call
		again := e.Note != "" || e.End != "" || c.Verb == fault.Watch && c.N > 2
		if !again && !plan.Locked(c) && slices.Contains(actors, c.Actor) {
			made = append(made, fault.Point{Call: c})
			c.At = 0
			as[c] = countedAs(e)
		}
	}
	return made, as
}

// countedAs returns the verb, the kind and the subresource of a request, and of a call outside of the cluster its name.
func countedAs(e transport.Entry) string {
	if e.Call.Verb == fault.Outside {
		return e.Call.Verb + " " + e.Call.Path
	}
	what := e.Call.Verb + " " + cmp.Or(e.Kind, e.Resource.String())
	if e.Subresource != "" {
		what += "/" + e.Subresource
	}
	return what
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

// counted is a fault with what its call is counted as, and in which turn it is tried.
type counted struct {
	Fault
	as string
	// again says that the same happens to an earlier call that is counted as the same.
	again bool
	turn  int
}

// byTurns returns faults in the order in which they are tried: each call has a turn with one fault, then each has
// another one. So a call that is made once has its faults before another one is failed for the fifth time.
func byTurns(all []Fault, as map[fault.Call]string) []counted {
	type pair struct {
		as   string
		kind FaultKind
	}
	seen, turns := map[pair]bool{}, map[string]int{}
	sorted := make([]counted, len(all))
	for i, f := range all {
		p := pair{as[f.Call()], f.Kind}
		sorted[i] = counted{Fault: f, as: p.as, again: seen[p]}
		seen[p] = true
	}
	slices.SortStableFunc(sorted, func(a, b counted) int {
		if a.again != b.again {
			return map[bool]int{false: -1, true: 1}[a.again]
		}
		// The order of hashes has nothing to do with that of the story: repetitions are from all of it.
		byHash := cmp.Compare(random.Hash(a.String()), random.Hash(b.String()))
		if a.again {
			return byHash
		}
		return cmp.Or(cmp.Compare(rank(a.Fault), rank(b.Fault)), byHash)
	})
	for i := range sorted {
		sorted[i].turn = turns[sorted[i].as]
		turns[sorted[i].as]++
	}
	slices.SortStableFunc(sorted, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(rank(a.Fault), rank(b.Fault)))
	})
	return sorted
}

// rank is lower for a fault that finds more.
func rank(f Fault) int {
	if f.Verb != fault.Outside && !fault.Writes(f.Verb) {
		return 2
	}
	if slices.Contains([]FaultKind{UserDeletes, DiesAfter, LosesAnswer, Conflicts}, f.Kind) {
		return 0
	}
	return 1
}
