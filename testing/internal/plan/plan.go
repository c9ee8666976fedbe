package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Kinds are the kinds of faults of a simulation. Their order decides what a seed draws.
var Kinds = []fault.Kind{
	fault.Refuses, fault.Fails, fault.LosesAnswer, fault.Conflicts, fault.Throttles, fault.Expires, fault.CutsWatch,
	fault.DelaysWatch, fault.DiesBefore, fault.DiesAfter, fault.Restarts,
}

// placed are the kinds of faults that only a fault by count can be. It depends on the story where they may strike.
var placed = []fault.Kind{fault.UserDeletes}

// Plan is what goes wrong. The zero value is a plan in which nothing does.
type Plan struct {
	// Seed is what latencies and chances are drawn from, and all else in a simulation that is random.
	Seed uint64
	// Latency is the longest time that a request takes to arrive, its answer, and an event of a watch. Shorter times
	// are drawn, too: a time is as often between a half and the whole of it as between a quarter and a half, and so on
	// down to a thousandth. 0 stands for a millisecond.
	Latency time.Duration
	// Chances are faults that are drawn.
	Chances []Chance
	// Calm is when chances end, since the simulation began. 0 stands for never.
	Calm time.Duration
	// Actors are those that latency and chances concern. None stands for all. The latency of others is a millisecond.
	Actors []string
	// Faults are faults by count. If several strike a call, the first one counts, and it goes before chances.
	Faults []fault.Fault
	// Clocks are those that are wrong.
	Clocks []Clock
}

// Chance is a fault that strikes calls at random. It strikes no discovery and no event that a recorder writes.
type Chance struct {
	Kind fault.Kind
	// OneIn is how many calls there are for one that is struck, on average. 0 stands for no call.
	OneIn uint64
	// Delay is the longest delay of a fault. It is drawn as latencies are.
	Delay time.Duration
}

// Clock is the clock of an actor that is wrong.
type Clock struct {
	Actor string
	// Ahead is how much time the clock is ahead of the true one. It may be negative.
	Ahead time.Duration
}

// Decision is what happens to a call.
type Decision struct {
	// Fault is what goes wrong, as a fault that strikes no other call. Its kind is empty if nothing does.
	Fault fault.Fault
	// There is how long the request takes, Back how long the answer takes.
	There, Back time.Duration
	// Lag is how long each event of a watch takes.
	Lag time.Duration
}

// shortLatency is the longest latency of calls that the latency of a plan does not concern. Without any, calls would be
// made in the same moment, in an order that only the scheduler knows.
const shortLatency = time.Millisecond

// Decide returns what happens to a call. Latency is drawn from the seed and the call without its time. A call that is
// [Locked] takes no time.
func (p Plan) Decide(c fault.Call) Decision {
	d := Decision{Fault: p.strike(c)}
	if !Locked(c) {
		longest := shortLatency
		if p.Latency > 0 && p.concerns(c.Actor) {
			longest = p.Latency
		}
		r := p.source("latency", c)
		d.There, d.Back = draw(r, longest), draw(r, longest)
		if c.Verb == fault.Watch {
			d.Lag = draw(r, longest)
		}
	}
	if d.Fault.Kind == fault.DelaysWatch {
		d.Lag = d.Fault.Delay
	}
	return d
}

func (p Plan) strike(c fault.Call) fault.Fault {
	for _, f := range p.Faults {
		if f.Strikes(c) && !(waits(f) && Locked(c)) {
			return fault.At(c, f.Kind, f.Delay)
		}
	}
	if Locked(c) || !p.concerns(c.Actor) || p.Calm > 0 && c.At >= p.Calm {
		return fault.Fault{}
	}
	for _, chance := range p.Chances {
		r := p.source(string(chance.Kind), c)
		if chance.OneIn > 0 && chance.Kind.Fits(c.Verb) && r.Uint64N(chance.OneIn) == 0 {
			return fault.At(c, chance.Kind, draw(r, chance.Delay).Round(time.Millisecond))
		}
	}
	return fault.Fault{}
}

// concerns reports whether latency and chances concern an actor.
func (p Plan) concerns(actor string) bool {
	return len(p.Actors) == 0 || slices.Contains(p.Actors, actor)
}

// Ahead returns how much time the clock of an actor is ahead of the true one.
func (p Plan) Ahead(actor string) time.Duration {
	for _, c := range p.Clocks {
		if c.Actor == actor {
			return c.Ahead
		}
	}
	return 0
}

// The reflectors of client-go draw from these how long a watch lasts.
const (
	LeastWatchTimeout = 5 * time.Minute
	MostWatchTimeout  = 10 * time.Minute
)

// WatchTimeout returns how long a watch lasts, in full seconds, if its client leaves that to chance.
func (p Plan) WatchTimeout(c fault.Call) time.Duration {
	r := p.source("timeout", c)
	return LeastWatchTimeout + time.Second*time.Duration(r.IntN(int((MostWatchTimeout-LeastWatchTimeout)/time.Second)))
}

// Missed returns the faults by count that were none of those that happened.
func (p Plan) Missed(happened []fault.Fault) []fault.Fault {
	var missed []fault.Fault
	for _, f := range p.Faults {
		if !slices.ContainsFunc(happened, func(h fault.Fault) bool { return h.Kind == f.Kind && f.Strikes(h.Call()) }) {
			missed = append(missed, f)
		}
	}
	return missed
}

// Validate returns an error for each part of the plan that can have no effect.
func (p Plan) Validate() error {
	var all []error
	for _, f := range p.Faults {
		err := f.Validate(slices.Concat(Kinds, placed))
		if err == nil {
			err = validateLocked(f)
		}
		if err != nil {
			all = append(all, fmt.Errorf("fault %s: %w", f, err))
		}
	}
	for _, c := range p.Chances {
		if !slices.Contains(Kinds, c.Kind) {
			all = append(all, fmt.Errorf("chance: there is no kind %q", c.Kind))
		}
	}
	return errors.Join(all...)
}
