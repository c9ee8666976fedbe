package fault

import "slices"

// Fewest leaves out as many items as it can, large parts first, while those that are left still pass.
//
// This is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), without
// the attempts to keep one part alone: leaving out all others comes to the same here.
func Fewest[T any](items []T, pass func([]T) bool) []T {
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
