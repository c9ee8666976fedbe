package reconcilers

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/graph"
)

// checkAwaited returns an error for a node that waits for a condition that can never be True: because the root sets it,
// because no node sets it, or because nodes wait for each other. Own are the conditions of the root.
func checkAwaited(places []place, own ...string) error {
	waits := make([][]wait, len(places))
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
				waits[i] = append(waits[i], waitsFor(places, condition, setters[0])...)
			}
		}
	}
	next := func(node int) []int {
		var waited []int
		for _, w := range waits[node] {
			waited = append(waited, w.to)
		}
		return waited
	}
	for i, p := range places {
		for _, w := range waits[i] {
			switch {
			case graph.Way(w.to, i, next) == nil:
			case i == w.setter:
				return fmt.Errorf("has node %s, which must not wait for its own condition %s", p.path, w.condition)
			default:
				return fmt.Errorf("has nodes that wait for each other: %s must not wait for the condition %s of %s, "+
					"which waits for it in turn", p.path, w.condition, places[w.setter].path)
			}
		}
	}
	return nil
}

// wait says that a node does not run until a condition is True, and that the condition is not before another node runs,
// which waits too.
type wait struct {
	setter, to int
	condition  string
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
