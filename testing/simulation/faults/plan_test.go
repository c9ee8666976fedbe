package faults_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation/faults"
)

const one = "/api/v1/namespaces/shop/configmaps/one"

func call(verb, path string, n int) faults.Call {
	return faults.Call{Actor: "operator", Verb: verb, Path: path, N: n}
}

func TestFaultsByCount(t *testing.T) {
	t.Parallel()
	create := call(faults.Create, one, 1)
	for name, row := range map[string]struct {
		fault faults.Fault
		call  faults.Call
		want  bool
	}{
		"the call":             {faults.At(create, faults.Fails, 0), create, true},
		"nothing is named":     {faults.Fault{Sort: faults.Fails}, create, true},
		"another actor":        {faults.Fault{Sort: faults.Fails, Actor: "kubelet"}, create, false},
		"another verb":         {faults.Fault{Sort: faults.Fails, Verb: faults.Update}, create, false},
		"another path":         {faults.Fault{Sort: faults.Fails, Path: one + "1"}, create, false},
		"a prefix":             {faults.Fault{Sort: faults.Fails, Path: "/api/v1"}, create, false},
		"the first by default": {faults.Fault{Sort: faults.Fails}, call(faults.Create, one, 2), false},
		"the second":           {faults.Fault{Sort: faults.Fails, Nth: 2}, call(faults.Create, one, 2), true},
		"the last of three":    {faults.Fault{Sort: faults.Fails, Nth: 2, Times: 3}, call(faults.Create, one, 4), true},
		"after three":          {faults.Fault{Sort: faults.Fails, Nth: 2, Times: 3}, call(faults.Create, one, 5), false},
		"stars": {
			faults.Fault{Sort: faults.Fails, Path: "/api/v1/namespaces/*/configmaps/o*e"}, create, true,
		},
		"a star is no slash": {faults.Fault{Sort: faults.Fails, Path: "/api/v1/namespaces/*"}, create, false},
		"a query": {
			faults.Fault{Sort: faults.Expires, Path: "/api/v1/pods*"}, call(faults.Watch, "/api/v1/pods?labelSelector=a", 1), true,
		},
		"another query": {
			faults.Fault{Sort: faults.Expires, Path: "/api/v1/pods"}, call(faults.Watch, "/api/v1/pods?labelSelector=a", 1), false,
		},
		"no conflict of a create":       {faults.Fault{Sort: faults.Conflicts}, create, false},
		"no retry of discovery":         {faults.Fault{Sort: faults.Throttles}, call(faults.Discover, "/apis", 1), false},
		"discovery of a crashed server": {faults.Fault{Sort: faults.Restarts}, call(faults.Discover, "/apis", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := faults.Plan{Faults: []faults.Fault{row.fault}}
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
			want := faults.Fault{}
			if row.want {
				want = faults.At(row.call, row.fault.Sort, 0)
			}
			if got := p.Decide(row.call).Fault; got != want {
				t.Errorf("the fault is %v, not %v", got, want)
			}
		})
	}
}

func TestFirstFaultCounts(t *testing.T) {
	t.Parallel()
	p := faults.Plan{
		Chances: []faults.Chance{{Sort: faults.Refuses, OneIn: 1}},
		Faults:  []faults.Fault{{Sort: faults.DiesBefore, Verb: faults.Update}, {Sort: faults.Fails}, {Sort: faults.LosesAnswer}},
	}
	if got := p.Decide(call(faults.Create, one, 1)).Fault.Sort; got != faults.Fails {
		t.Errorf("the first call meets %q", got)
	}
	if got := p.Decide(call(faults.Create, one, 2)).Fault.Sort; got != faults.Refuses {
		t.Errorf("the second call meets %q", got)
	}
	missed := p.Missed([]faults.Fault{faults.At(call(faults.Create, one, 1), faults.Fails, 0)})
	if want := []faults.Fault{p.Faults[0], p.Faults[2]}; !slices.Equal(missed, want) {
		t.Errorf("missed were %v, not %v", missed, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]faults.Plan{
		"there is no sort":        {Faults: []faults.Fault{{Sort: "Explodes"}}},
		"does not happen to get":  {Faults: []faults.Fault{{Sort: faults.Conflicts, Verb: faults.Get}}},
		"begin with a slash":      {Faults: []faults.Fault{{Sort: faults.Fails, Path: "configmaps"}}},
		"number is negative":      {Faults: []faults.Fault{{Sort: faults.Fails, Nth: -1}}},
		`there is no sort "Melts`: {Chances: []faults.Chance{{Sort: "Melts"}}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error is %v, not %s", err, name)
		}
	}
}

// calls are many different ones.
func calls(yield func(faults.Call) bool) {
	for _, actor := range []string{"operator", "kubelet"} {
		for _, verb := range []string{faults.Get, faults.List, faults.Watch, faults.Create, faults.Update, faults.Discover} {
			for n := range 500 {
				if !yield(faults.Call{Actor: actor, Verb: verb, Path: one, N: n + 1, At: time.Duration(n) * time.Second}) {
					return
				}
			}
		}
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	p := faults.Plan{Seed: 1, Latency: time.Second, Actors: []string{"operator"}}
	drawn := map[time.Duration]int{}
	var short, long, n int
	for c := range calls {
		d := p.Decide(c)
		if c.Verb == faults.Discover {
			if d != (faults.Decision{}) {
				t.Fatalf("%v is %v", c, d)
			}
			continue
		}
		if c.Actor != "operator" {
			if without := (faults.Plan{Seed: 1}).Decide(c); d != without || max(d.There, d.Back, d.Lag) > time.Millisecond {
				t.Fatalf("%v is %v, and without latency %v", c, d, without)
			}
			continue
		}
		if (d.Lag > 0) != (c.Verb == faults.Watch) {
			t.Errorf("the events of %v take %v", c, d.Lag)
		}
		for _, l := range []time.Duration{d.There, d.Back} {
			if drawn[l]++; l <= time.Second/2048 || l > time.Second || drawn[l] > 2 {
				t.Errorf("%v takes %v", c, l)
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
		t.Errorf("of %d latencies, %d are short and %d are long", n, short, long)
	}
}

func TestChance(t *testing.T) {
	t.Parallel()
	p := faults.Plan{
		Seed: 1, Actors: []string{"operator"}, Calm: 400 * time.Second,
		Chances: []faults.Chance{
			{Sort: faults.Conflicts, OneIn: 4}, {Sort: faults.CutsWatch, OneIn: 4, Delay: time.Minute}, {Sort: faults.Fails},
		},
	}
	struck := map[string]int{}
	for c := range calls {
		f := p.Decide(c).Fault
		if f.Sort == "" {
			continue
		}
		struck[string(f.Sort)+" "+c.Verb]++
		if c.At >= p.Calm || c.Actor != "operator" || f.Delay > time.Minute {
			t.Errorf("%v is struck by %v", c, f)
		}
		again := faults.Plan{Faults: []faults.Fault{f}}
		if got := again.Decide(c).Fault; got != f {
			t.Errorf("%v does not strike %v again", f, c)
		}
	}
	for what, n := range struck {
		if n < 75 || n > 125 {
			t.Errorf("%s happened %d times of 400", what, n)
		}
	}
	if len(struck) != 2 {
		t.Errorf("what happened is %v", struck)
	}
}

func TestWatchTimeout(t *testing.T) {
	t.Parallel()
	drawn := map[time.Duration]bool{}
	for c := range calls {
		timeout := faults.Plan{Seed: 1}.WatchTimeout(c)
		drawn[timeout] = true
		if timeout < 5*time.Minute || timeout >= 10*time.Minute || timeout%time.Second != 0 {
			t.Errorf("%v lasts %v", c, timeout)
		}
	}
	if len(drawn) < 250 {
		t.Errorf("there are %d timeouts", len(drawn))
	}
}

// TestDrawsAreIndependent leaves a chance out, which makes no other fault and no latency different.
func TestDrawsAreIndependent(t *testing.T) {
	t.Parallel()
	p := faults.Plan{
		Seed: 1, Latency: time.Second,
		Chances: []faults.Chance{{Sort: faults.Fails, OneIn: 8}, {Sort: faults.Refuses, OneIn: 8}},
	}
	less := p
	less.Chances = p.Chances[1:]
	for c := range calls {
		a, b := p.Decide(c), less.Decide(c)
		if a.There != b.There || a.Back != b.Back || a.Fault.Sort != faults.Fails && a.Fault != b.Fault {
			t.Errorf("%v is %v, then %v", c, a, b)
		}
	}
}
