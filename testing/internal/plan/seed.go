package plan

import (
	"math/rand/v2"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/random"
)

// Options say what [FromSeed] may draw.
type Options struct {
	// Actors are those that latency and chances concern, and whose clocks may be wrong. None stands for all, but for
	// clocks.
	Actors []string
	// Kinds are the kinds of chances. None stands for all.
	Kinds []fault.Kind
	// Latency is the longest latency. 0 stands for 2 seconds.
	Latency time.Duration
	// Delay is the longest delay of a fault. 0 stands for 10 minutes.
	Delay time.Duration
	// Calm is when chances end. 0 stands for one hour.
	Calm time.Duration
	// Clock is the most that a clock may be wrong. 0 stands for clocks that are right.
	Clock time.Duration
}

// FromSeed draws a plan. Each kind of fault is in half of all plans, and more often in some than in others, for many
// faults of one kind find other bugs than a few of all kinds do.
func FromSeed(seed uint64, options Options) Plan {
	defaults(&options.Latency, 2*time.Second)
	defaults(&options.Delay, 10*time.Minute)
	defaults(&options.Calm, time.Hour)
	if len(options.Kinds) == 0 {
		options.Kinds = Kinds
	}
	p := Plan{Seed: seed, Calm: options.Calm, Actors: options.Actors}
	p.Latency = roundUp(draw(random.Source(seed, "the latency"), options.Latency))
	for _, kind := range options.Kinds {
		r := random.Source(seed, "the chance of", string(kind))
		if r.IntN(2) == 0 {
			p.Chances = append(p.Chances, drawChance(r, kind, options.Delay))
		}
	}
	for _, actor := range options.Actors {
		r := random.Source(seed, "the clock of", actor)
		if options.Clock > 0 && r.IntN(2) == 0 {
			p.Clocks = append(p.Clocks, drawClock(r, actor, options.Clock))
		}
	}
	return p
}

func drawChance(r *rand.Rand, kind fault.Kind, longest time.Duration) Chance {
	c := Chance{Kind: kind, OneIn: 8 << r.IntN(7)}
	switch kind {
	case fault.CutsWatch, fault.DelaysWatch, fault.Restarts:
		c.Delay = roundUp(draw(r, longest))
	case fault.Throttles:
		c.Delay = roundUp(draw(r, min(longest, time.Minute)))
	}
	return c
}

func drawClock(r *rand.Rand, actor string, most time.Duration) Clock {
	ahead := roundUp(draw(r, most))
	if r.IntN(2) == 0 {
		ahead = -ahead
	}
	return Clock{Actor: actor, Ahead: ahead}
}

func defaults(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// roundUp makes a duration easy to read.
func roundUp(d time.Duration) time.Duration { return max(d.Round(time.Millisecond), time.Millisecond) }
