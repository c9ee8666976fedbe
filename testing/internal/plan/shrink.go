package plan

import "github.com/espalier-dev/espalier/internal/fault"

// Shrink returns the smallest plan that still fails: no fault, no wrong clock, no latency and no seed of it can be left
// out. What a plan did in a run takes the place of its faults and chances. If the plan fails no more then, it is
// returned as it is. Whether a plan fails is what a run of the simulation with it says.
func Shrink(p Plan, happened []fault.Fault, fails func(Plan) bool) Plan {
	parts := parts(p, happened)
	if !fails(assemble(parts)) {
		return p
	}
	return assemble(fault.Fewest(parts, func(parts []part) bool { return fails(assemble(parts)) }))
}

// part adds one thing that goes wrong to a plan.
type part func(p *Plan)

func parts(p Plan, happened []fault.Fault) []part {
	var all []part
	if p.Seed != 0 {
		all = append(all, func(q *Plan) { q.Seed = p.Seed })
	}
	if p.Latency > 0 {
		all = append(all, func(q *Plan) { q.Latency, q.Actors = p.Latency, p.Actors })
	}
	for _, c := range p.Clocks {
		all = append(all, func(q *Plan) { q.Clocks = append(q.Clocks, c) })
	}
	for _, f := range happened {
		all = append(all, func(q *Plan) { q.Faults = append(q.Faults, f) })
	}
	return all
}

func assemble(parts []part) Plan {
	var p Plan
	for _, add := range parts {
		add(&p)
	}
	return p
}
