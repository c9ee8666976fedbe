package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
)

func TestFromSeed(t *testing.T) {
	t.Parallel()
	options := plan.Options{Actors: []string{"operator"}, Clock: time.Minute}
	kinds, plans := map[fault.Kind]int{}, map[string]bool{}
	var ahead, behind int
	for seed := range uint64(200) {
		p := plan.FromSeed(seed, options)
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if p.Code() != plan.FromSeed(seed, options).Code() {
			t.Errorf("seed %d gives two plans, want one", seed)
		}
		plans[p.Code()] = true
		if p.Seed != seed || p.Latency <= 0 || p.Latency > 2*time.Second || p.Calm != time.Hour ||
			!slices.Equal(p.Actors, options.Actors) {
			t.Errorf("the plan is %v, want the seed %d, at most 2 s of latency, calm after 1h and %v", p, seed,
				options.Actors)
		}
		for _, c := range p.Chances {
			if kinds[c.Kind]++; c.OneIn < 8 || c.OneIn > 512 || c.Delay > 10*time.Minute {
				t.Errorf("the chance is %v, want one in 8 to 512 with at most 10m of delay", c)
			}
		}
		switch a := p.Ahead("operator"); {
		case a > time.Minute || a < -time.Minute:
			t.Errorf("the clock is %v ahead, want at most 1m either way", a)
		case a > 0:
			ahead++
		case a < 0:
			behind++
		}
	}
	for _, s := range plan.Kinds {
		if kinds[s] < 70 || kinds[s] > 130 {
			t.Errorf("%s is in %d plans of 200, want 70 to 130", s, kinds[s])
		}
	}
	if len(plans) != 200 || ahead < 25 || behind < 25 {
		t.Errorf("there are %d plans, %d clocks ahead and %d behind, want 200 and at least 25 of each", len(plans),
			ahead, behind)
	}
}

func TestFromSeedDrawsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		p := plan.FromSeed(seed, plan.Options{
			Kinds: []fault.Kind{fault.CutsWatch}, Latency: time.Millisecond, Delay: time.Second, Calm: time.Minute,
		})
		if len(p.Chances) > 1 || p.Latency > time.Millisecond || p.Calm != time.Minute || len(p.Clocks) > 0 ||
			len(p.Chances) == 1 && (p.Chances[0].Kind != fault.CutsWatch || p.Chances[0].Delay > time.Second) {
			t.Errorf("the plan is %v, want the given limits, calm after 1m, and no clocks", p)
		}
	}
}

// TestDrawsStayTheSame fails if the same seed gives something else than it did, which makes seeds in bug reports void.
func TestDrawsStayTheSame(t *testing.T) {
	t.Parallel()
	p := plan.FromSeed(7, plan.Options{Kinds: []fault.Kind{fault.Throttles}})
	const want = `simulation.Plan{
	Seed:    7,
	Latency: 811 * time.Millisecond,
	Chances: []simulation.Chance{
		{Kind: simulation.Throttles, OneIn: 32, Delay: 28645 * time.Millisecond},
	},
	Calm: time.Hour,
}`
	if got := p.Code(); got != want {
		t.Errorf("seed 7 gives %s\nwant %s", got, want)
	}
	d := p.Decide(call(fault.Watch, "/api/v1/pods", 1))
	if d.There != 815312 || d.Back != 49057081 || d.Lag != 578519893 {
		t.Errorf("the latencies are %d, %d and %d, want 815312, 49057081 and 578519893", d.There, d.Back, d.Lag)
	}
}
