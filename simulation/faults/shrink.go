package faults

import "slices"

// Shrink returns the smallest plan that still fails: no fault, no wrong clock, no latency and no seed of it can be left
// out. What a plan did in a run takes the place of its faults and chances. If the plan fails no more then, it is
// returned as it is. Whether a plan fails is what a run of the simulation with it says.
func Shrink(p Plan, happened []Fault, fails func(Plan) bool) Plan {
	parts := parts(p, happened)
	if !fails(assemble(parts)) {
		return p
	}
	return assemble(fewest(parts, func(parts []part) bool { return fails(assemble(parts)) }))
}

// part adds one thing that goes wrong to a plan.
type part func(p *Plan)

func parts(p Plan, happened []Fault) []part {
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

// fewest leaves out as many items as it can, large parts first, while those that are left still pass.
//
// This is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), without
// the attempts to keep one part alone: leaving out all others comes to the same here.
func fewest[T any](items []T, pass func([]T) bool) []T {
	for size := (len(items) + 1) / 2; size > 0; {
		smaller := false
		for start := 0; start < len(items); {
			rest := slices.Concat(items[:start], items[min(start+size, len(items)):])
			if pass(rest) {
				items, smaller = rest, true
				continue
			}
			start += size
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return items
}
