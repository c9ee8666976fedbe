package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

const one = "/api/v1/namespaces/shop/configmaps/one"

// event and coreEvent are paths of the same events.
const (
	event     = "/apis/events.k8s.io/v1/namespaces/shop/events/one"
	coreEvent = "/api/v1/namespaces/shop/events/one"
)

func call(verb, path string, n int) fault.Call {
	return fault.Call{Actor: "operator", Verb: verb, Path: path, N: n}
}

func TestFaultsByCount(t *testing.T) {
	t.Parallel()
	create := call(fault.Create, one, 1)
	for name, row := range map[string]struct {
		fault fault.Fault
		call  fault.Call
		want  bool
	}{
		"the call":             {fault.At(create, fault.Fails, 0), create, true},
		"nothing is named":     {fault.Fault{Kind: fault.Fails}, create, true},
		"another actor":        {fault.Fault{Kind: fault.Fails, Actor: "kubelet"}, create, false},
		"another verb":         {fault.Fault{Kind: fault.Fails, Verb: fault.Update}, create, false},
		"another path":         {fault.Fault{Kind: fault.Fails, Path: one + "1"}, create, false},
		"a prefix":             {fault.Fault{Kind: fault.Fails, Path: "/api/v1"}, create, false},
		"the first by default": {fault.Fault{Kind: fault.Fails}, call(fault.Create, one, 2), false},
		"the second":           {fault.Fault{Kind: fault.Fails, Nth: 2}, call(fault.Create, one, 2), true},
		"the last of three":    {fault.Fault{Kind: fault.Fails, Nth: 2, Times: 3}, call(fault.Create, one, 4), true},
		"after three":          {fault.Fault{Kind: fault.Fails, Nth: 2, Times: 3}, call(fault.Create, one, 5), false},
		"stars": {
			fault.Fault{Kind: fault.Fails, Path: "/api/v1/namespaces/*/configmaps/o*e"}, create, true,
		},
		"a star is no slash": {fault.Fault{Kind: fault.Fails, Path: "/api/v1/namespaces/*"}, create, false},
		"a query": {
			fault.Fault{Kind: fault.Expires, Path: "/api/v1/pods*"}, call(fault.Watch, "/api/v1/pods?labelSelector=a", 1), true,
		},
		"another query": {
			fault.Fault{Kind: fault.Expires, Path: "/api/v1/pods"}, call(fault.Watch, "/api/v1/pods?labelSelector=a", 1), false,
		},
		"no conflict of a create":       {fault.Fault{Kind: fault.Conflicts}, create, false},
		"no retry of discovery":         {fault.Fault{Kind: fault.Throttles}, call(fault.Discover, "/apis", 1), false},
		"no wait for an event":          {fault.Fault{Kind: fault.Throttles}, call(fault.Patch, event, 1), false},
		"no step of a user meanwhile":   {fault.Fault{Kind: fault.UserDeletes}, call(fault.Create, coreEvent, 1), false},
		"an event fails":                {fault.Fault{Kind: fault.Fails, Path: event}, call(fault.Patch, event, 1), true},
		"a list of events waits":        {fault.Fault{Kind: fault.Throttles}, call(fault.List, "/api/v1/events", 1), true},
		"discovery of a crashed server": {fault.Fault{Kind: fault.Restarts}, call(fault.Discover, "/apis", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan.Plan{Faults: []fault.Fault{row.fault}}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
			want := fault.Fault{}
			if row.want {
				want = fault.At(row.call, row.fault.Kind, 0)
			}
			if got := p.Decide(row.call).Fault; got != want {
				t.Errorf("the fault is %v, want %v", got, want)
			}
		})
	}
}

func TestFirstFaultCounts(t *testing.T) {
	t.Parallel()
	p := plan.Plan{
		Chances: []plan.Chance{{Kind: fault.Refuses, OneIn: 1}},
		Faults:  []fault.Fault{{Kind: fault.DiesBefore, Verb: fault.Update}, {Kind: fault.Fails}, {Kind: fault.LosesAnswer}},
	}
	if got := p.Decide(call(fault.Create, one, 1)).Fault.Kind; got != fault.Fails {
		t.Errorf("the first call meets %q, want %q", got, fault.Fails)
	}
	if got := p.Decide(call(fault.Create, one, 2)).Fault.Kind; got != fault.Refuses {
		t.Errorf("the second call meets %q, want %q", got, fault.Refuses)
	}
	missed := p.Missed([]fault.Fault{fault.At(call(fault.Create, one, 1), fault.Fails, 0)})
	if want := []fault.Fault{p.Faults[0], p.Faults[2]}; !slices.Equal(missed, want) {
		t.Errorf("missed were %v, want %v", missed, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]plan.Plan{
		"there is no kind":        {Faults: []fault.Fault{{Kind: "Explodes"}}},
		"does not happen to get":  {Faults: []fault.Fault{{Kind: fault.Conflicts, Verb: fault.Get}}},
		"begin with a slash":      {Faults: []fault.Fault{{Kind: fault.Fails, Path: "configmaps"}}},
		"number is negative":      {Faults: []fault.Fault{{Kind: fault.Fails, Nth: -1}}},
		`there is no kind "Melts`: {Chances: []plan.Chance{{Kind: "Melts"}}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, want it to contain %s", err, name)
		}
	}
}

// calls are many different ones.
func calls(yield func(fault.Call) bool) {
	for _, actor := range []string{"operator", "kubelet"} {
		for _, verb := range []string{fault.Get, fault.List, fault.Watch, fault.Create, fault.Update, fault.Discover} {
			for n := range 500 {
				if !yield(fault.Call{Actor: actor, Verb: verb, Path: one, N: n + 1, At: time.Duration(n) * time.Second}) {
					return
				}
			}
		}
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Seed: 1, Latency: time.Second, Actors: []string{"operator"}}
	drawn := map[time.Duration]int{}
	var short, long, n int
	for c := range calls {
		d := p.Decide(c)
		if c.Verb == fault.Discover {
			if d != (plan.Decision{}) {
				t.Fatalf("the decision for %v is %v, want none", c, d)
			}
			continue
		}
		if c.Actor != "operator" {
			if without := (plan.Plan{Seed: 1}).Decide(c); d != without || max(d.There, d.Back, d.Lag) > time.Millisecond {
				t.Fatalf("the decision for %v is %v, want %v as without latency, of at most 1ms", c, d, without)
			}
			continue
		}
		if (d.Lag > 0) != (c.Verb == fault.Watch) {
			t.Errorf("the events of %v take %v, want that of watches alone", c, d.Lag)
		}
		for _, l := range []time.Duration{d.There, d.Back} {
			if drawn[l]++; l <= time.Second/2048 || l > time.Second || drawn[l] > 2 {
				t.Errorf("%v takes %v, want 1/2048 to 1 s, and a latency twice at most", c, l)
			}
			n++
			if l < 10*time.Millisecond {
				short++
			}
			if l > 100*time.Millisecond {
				long++
			}
		}
	}
	if short < n/4 || long < n/4 {
		t.Errorf("of %d latencies, %d are short and %d are long, want a quarter of each", n, short, long)
	}
}

func TestChance(t *testing.T) {
	t.Parallel()
	p := plan.Plan{
		Seed: 1, Actors: []string{"operator"}, Calm: 400 * time.Second,
		Chances: []plan.Chance{
			{Kind: fault.Conflicts, OneIn: 4}, {Kind: fault.CutsWatch, OneIn: 4, Delay: time.Minute}, {Kind: fault.Fails},
		},
	}
	struck := map[string]int{}
	for c := range calls {
		f := p.Decide(c).Fault
		if f.Kind == "" {
			continue
		}
		struck[string(f.Kind)+" "+c.Verb]++
		if c.At >= p.Calm || c.Actor != "operator" || f.Delay > time.Minute {
			t.Errorf("%v is struck by %v, want calls of the operator before %v, and a delay of 1m at most", c, f,
				p.Calm)
		}
		again := plan.Plan{Faults: []fault.Fault{f}}
		if got := again.Decide(c).Fault; got != f {
			t.Errorf("%v strikes %v the second time, want %v again", got, c, f)
		}
	}
	for what, n := range struck {
		if n < 75 || n > 125 {
			t.Errorf("%s happened %d times of 400, want 75 to 125", what, n)
		}
	}
	if len(struck) != 2 {
		t.Errorf("what happened is %v, want two kinds", struck)
	}
}

func TestWatchTimeout(t *testing.T) {
	t.Parallel()
	drawn := map[time.Duration]bool{}
	for c := range calls {
		timeout := plan.Plan{Seed: 1}.WatchTimeout(c)
		drawn[timeout] = true
		if timeout < 5*time.Minute || timeout >= 10*time.Minute || timeout%time.Second != 0 {
			t.Errorf("%v lasts %v, want whole seconds from 5m to 10m", c, timeout)
		}
	}
	if len(drawn) < 250 {
		t.Errorf("there are %d timeouts, want at least 250", len(drawn))
	}
}

// TestDrawsAreIndependent leaves a chance out, which makes no other fault and no latency different.
func TestDrawsAreIndependent(t *testing.T) {
	t.Parallel()
	p := plan.Plan{
		Seed: 1, Latency: time.Second,
		Chances: []plan.Chance{{Kind: fault.Fails, OneIn: 8}, {Kind: fault.Refuses, OneIn: 8}},
	}
	less := p
	less.Chances = p.Chances[1:]
	for c := range calls {
		a, b := p.Decide(c), less.Decide(c)
		if a.There != b.There || a.Back != b.Back || a.Fault.Kind != fault.Fails && a.Fault != b.Fault {
			t.Errorf("the decision for %v is %v and then %v, want the same but for %s", c, a, b, fault.Fails)
		}
	}
}

// TestEventsDoNotWait has requests of recorders meet nothing that takes virtual time.
func TestEventsDoNotWait(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Latency: time.Minute}
	for _, kind := range plan.Kinds {
		p.Chances = append(p.Chances, plan.Chance{Kind: kind, OneIn: 1})
	}
	for _, path := range []string{event, coreEvent} {
		for _, verb := range []string{fault.Create, fault.Update, fault.Patch} {
			if got := p.Decide(call(verb, path, 1)); got != (plan.Decision{}) {
				t.Errorf("%s %s meets %v", verb, path, got)
			}
		}
		if got := p.Decide(call(fault.Get, path, 1)); got.There == 0 || got.Fault.Kind == "" {
			t.Errorf("a get of %s meets %v", path, got)
		}
	}
	if plan.Locked(call(fault.Create, one, 1)) || plan.Locked(call(fault.Create, "/api/v1/namespaces/events", 1)) {
		t.Error("it is not an event")
	}
	const pattern, corePattern = "/apis/events.k8s.io/v1/namespaces/*/events*", "/api/v1/namespaces/*/events/*"
	for _, path := range []string{event, coreEvent, pattern, corePattern} {
		for f, refused := range map[fault.Fault]bool{
			{Kind: fault.Throttles, Path: path}: true, {Kind: fault.Throttles, Verb: fault.Patch, Path: path}: true,
			{Kind: fault.UserDeletes, Path: path}: true, {Kind: fault.UserDeletes, Path: path, Delay: time.Hour}: false,
			{Kind: fault.Throttles, Verb: fault.List, Path: path}: false, {Kind: fault.LosesAnswer, Path: path}: false,
		} {
			err := plan.Plan{Faults: []fault.Fault{f}}.Validate()
			if refused != (err != nil && strings.Contains(err.Error(), "hold a mutex")) || !refused && err != nil {
				t.Errorf("%v of %s: %v", f, path, err)
			}
		}
	}
}
