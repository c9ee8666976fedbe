package reconcilers

import (
	"fmt"
	"slices"
)

// checkAwaited returns an error for a node that waits for a condition that can never be True: because the root sets it,
// because no node sets it, or because nodes wait for each other. Own are the conditions of the root.
func checkAwaited(places []place, own ...string) error {
	graph := make([][]wait, len(places))
	for i, p := range places {
		for _, condition := range p.Awaits {
			if slices.Contains(own, condition) {
				return fmt.Errorf("sets the condition %s itself, so node %s must not wait for it", condition, p.path)
			}
			setters := settersOf(places, condition)
			if len(setters) == 0 {
				return fmt.Errorf("has no node that sets the condition %s, for which node %s waits", condition, p.path)
			}
			if len(setters) == 1 {
				// Of several nodes, only one runs. That is another one as the case may be.
				graph[i] = append(graph[i], waitsFor(places, condition, setters[0])...)
			}
		}
	}
	visited := make([]bool, len(places))
	for i := range places {
		if found, ok := findCycle(graph, i, visited, nil); ok {
			if found.from == found.setter {
				return fmt.Errorf("has node %s, which must not wait for its own condition %s",
					places[found.from].path, found.condition)
			}
			return fmt.Errorf("has nodes that wait for each other: %s must not wait for the condition %s of %s, "+
				"which waits for it in turn", places[found.from].path, found.condition, places[found.setter].path)
		}
	}
	return nil
}

// wait says that a node does not run until a condition is True, and that the condition is not before another node runs,
// which waits too.
type wait struct {
	from, setter, to int
	condition        string
}

// settersOf returns the nodes that set a condition.
func settersOf(places []place, condition string) []int {
	var setters []int
	for i, p := range places {
		if slices.Contains(p.Conditions, condition) {
			setters = append(setters, i)
		}
	}
	return setters
}

// waitsFor returns the nodes that have to run before the condition of the node setter is True, as far as they wait for
// a condition themselves: the setter, those around it, and those nested in it.
func waitsFor(places []place, condition string, setter int) []wait {
	var waits []wait
	for i, p := range places {
		concerns := i == setter || slices.Contains(places[setter].around, i) || slices.Contains(p.around, setter)
		if concerns && len(p.Awaits) > 0 {
			waits = append(waits, wait{to: i, setter: setter, condition: condition})
		}
	}
	return waits
}

// findCycle returns the wait that closes a cycle, if one can be reached from a node. Above are the nodes on the way.
func findCycle(graph [][]wait, node int, visited []bool, above []int) (wait, bool) {
	if visited[node] {
		return wait{}, false
	}
	visited[node] = true
	above = append(above, node)
	for _, w := range graph[node] {
		w.from = node
		if slices.Contains(above, w.to) {
			return w, true
		}
		if found, ok := findCycle(graph, w.to, visited, above); ok {
			return found, true
		}
	}
	return wait{}, false
}
