package faults

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The verbs of calls, as in Kubernetes' authorization. There are two more: an apply is a patch by server-side apply,
// and Discover is a request for something that is not a resource.
const (
	Get              = "get"
	List             = "list"
	Watch            = "watch"
	Create           = "create"
	Update           = "update"
	Patch            = "patch"
	Apply            = "apply"
	Delete           = "delete"
	DeleteCollection = "deletecollection"
	Discover         = "discover"
)

// Call is a request as a plan sees it.
type Call struct {
	// Actor is who makes the request, such as "operator".
	Actor string
	// Verb is one of the verbs above.
	Verb string
	// Path is that of the URL. To that of a create, the name of the object or its generateName is added. To that of a
	// list or a watch, what makes two of them differ is added as a query, such as
	// "/api/v1/pods?labelSelector=app%3Dweb".
	Path string
	// N is 1 for the first call of this actor, verb and path.
	N int
	// At is when the call is made, since the simulation began.
	At time.Duration
}

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
	Faults []Fault
	// Clocks are those that are wrong.
	Clocks []Clock
}

// Chance is a fault that strikes calls at random. It strikes no discovery.
type Chance struct {
	Sort Sort
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
	// Fault is what goes wrong, as a fault that strikes no other call. Its sort is empty if nothing does.
	Fault Fault
	// There is how long the request takes, Back how long the answer takes.
	There, Back time.Duration
	// Lag is how long each event of a watch takes.
	Lag time.Duration
}

// shortLatency is the longest latency of calls that the latency of a plan does not concern. Without any, calls would be
// made in the same moment, in an order that only the scheduler knows.
const shortLatency = time.Millisecond

// Decide returns what happens to a call. Latency is drawn from the seed and the call without its time. Discovery takes
// no time, for clients do it while they hold locks.
func (p Plan) Decide(c Call) Decision {
	d := Decision{Fault: p.fault(c)}
	if c.Verb != Discover {
		longest := shortLatency
		if p.Latency > 0 && p.concerns(c.Actor) {
			longest = p.Latency
		}
		r := p.source("latency", c)
		d.There, d.Back = draw(r, longest), draw(r, longest)
		if c.Verb == Watch {
			d.Lag = draw(r, longest)
		}
	}
	if d.Fault.Sort == DelaysWatch {
		d.Lag = d.Fault.Delay
	}
	return d
}

func (p Plan) fault(c Call) Fault {
	for _, f := range p.Faults {
		if f.strikes(c) {
			return At(c, f.Sort, f.Delay)
		}
	}
	if c.Verb == Discover || !p.concerns(c.Actor) || p.Calm > 0 && c.At >= p.Calm {
		return Fault{}
	}
	for _, chance := range p.Chances {
		r := p.source(string(chance.Sort), c)
		if chance.OneIn > 0 && chance.Sort.Fits(c.Verb) && r.Uint64N(chance.OneIn) == 0 {
			return At(c, chance.Sort, draw(r, chance.Delay).Round(time.Millisecond))
		}
	}
	return Fault{}
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
func (p Plan) WatchTimeout(c Call) time.Duration {
	r := p.source("timeout", c)
	return LeastWatchTimeout + time.Second*time.Duration(r.IntN(int((MostWatchTimeout-LeastWatchTimeout)/time.Second)))
}

// Missed returns the faults by count that were none of those that happened.
func (p Plan) Missed(happened []Fault) []Fault {
	var missed []Fault
	for _, f := range p.Faults {
		if !slices.ContainsFunc(happened, func(h Fault) bool { return h.Sort == f.Sort && f.strikes(h.call()) }) {
			missed = append(missed, f)
		}
	}
	return missed
}

// Validate returns an error for each part of the plan that can have no effect.
func (p Plan) Validate() error {
	var all []error
	for _, f := range p.Faults {
		if err := f.validate(); err != nil {
			all = append(all, fmt.Errorf("fault %s: %w", f, err))
		}
	}
	for _, c := range p.Chances {
		if !slices.Contains(Sorts, c.Sort) {
			all = append(all, fmt.Errorf("chance: there is no sort %q", c.Sort))
		}
	}
	return errors.Join(all...)
}
