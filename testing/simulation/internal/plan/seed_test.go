package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/simulation/internal/plan"
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
			t.Errorf("seed %d gives two plans", seed)
		}
		plans[p.Code()] = true
		if p.Seed != seed || p.Latency <= 0 || p.Latency > 2*time.Second || p.Calm != time.Hour ||
			!slices.Equal(p.Actors, options.Actors) {
			t.Errorf("the plan is %v", p)
		}
		for _, c := range p.Chances {
			if kinds[c.Kind]++; c.OneIn < 8 || c.OneIn > 512 || c.Delay > 10*time.Minute {
				t.Errorf("the chance is %v", c)
			}
		}
		switch a := p.Ahead("operator"); {
		case a > time.Minute || a < -time.Minute:
			t.Errorf("the clock is %v ahead", a)
		case a > 0:
			ahead++
		case a < 0:
			behind++
		}
	}
	for _, s := range plan.Kinds {
		if kinds[s] < 70 || kinds[s] > 130 {
			t.Errorf("%s is in %d plans of 200", s, kinds[s])
		}
	}
	if len(plans) != 200 || ahead < 25 || behind < 25 {
		t.Errorf("%d plans, %d clocks ahead and %d behind", len(plans), ahead, behind)
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
			t.Errorf("the plan is %v", p)
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
		t.Errorf("seed 7 gives %s", got)
	}
	d := p.Decide(call(fault.Watch, "/api/v1/pods", 1))
	if d.There != 815312 || d.Back != 49057081 || d.Lag != 578519893 {
		t.Errorf("the latencies are %d, %d, %d", d.There, d.Back, d.Lag)
	}
}
