package dependents

import (
	"fmt"
	"slices"
	"strings"
)

// order returns the indexes of plans so that each comes after those that it waits for, and else in the given order. It
// returns an error for what can never run: names that are not unique or not known, cells that nobody yields, cycles.
func order(plans []*plan) ([]int, error) {
	edges, err := edgesOf(plans)
	if err != nil {
		return nil, err
	}
	var sorted, path []int
	done := make([]bool, len(plans))
	var visit func(i int) error
	visit = func(i int) error {
		if start := slices.Index(path, i); start >= 0 {
			return fmt.Errorf("must have no cycle: %s", cycle(plans, append(path[start:], i)))
		}
		if done[i] {
			return nil
		}
		path = append(path, i)
		for _, j := range edges[i] {
			if err := visit(j); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		done[i] = true
		sorted = append(sorted, i)
		return nil
	}
	for i := range plans {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// cycle returns the names of plans, each of which waits for the next.
func cycle(plans []*plan, path []int) string {
	names := make([]string, len(path))
	for i, at := range path {
		names[i] = fmt.Sprintf("%q", plans[at].name)
	}
	return strings.Join(names, " waits for ")
}

// edgesOf returns for each plan the indexes of those that it waits for.
func edgesOf(plans []*plan) ([][]int, error) {
	byName, producers, named := map[string]int{}, map[AnyCell][]int{}, map[string]AnyCell{}
	for i, p := range plans {
		if _, known := byName[p.name]; known {
			return nil, fmt.Errorf("must have dependents of different names, not %q twice", p.name)
		}
		byName[p.name] = i
		for _, c := range p.yields {
			producers[c] = append(producers[c], i)
		}
		for _, c := range slices.Concat(p.yields, p.needs) {
			if other, known := named[c.cellName()]; known && other != c {
				return nil, fmt.Errorf("must have cells of different names, not %q twice", c.cellName())
			}
			named[c.cellName()] = c
		}
	}
	edges := make([][]int, len(plans))
	for i, p := range plans {
		for _, name := range p.after {
			j, known := byName[name]
			if !known {
				return nil, p.errorf("must be after a dependent of the set, not after %q", name)
			}
			edges[i] = append(edges[i], j)
		}
		for _, c := range p.needs {
			if len(producers[c]) == 0 {
				return nil, p.errorf("needs %q, which no dependent of the set yields", c.cellName())
			}
			edges[i] = append(edges[i], producers[c]...)
		}
	}
	return edges, nil
}

// graph returns a line for each plan, in the order in which they run.
func graph(plans []*plan, order []int) string {
	width := 0
	for _, p := range plans {
		width = max(width, len(p.name))
	}
	var b strings.Builder
	for _, i := range order {
		fmt.Fprintf(&b, "%-*s  %s\n", width, plans[i].name, plans[i].describe())
	}
	return b.String()
}
