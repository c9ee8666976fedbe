package replay

import (
	"context"
	"slices"
)

// Shrink returns the fewest of the given items, such as given objects, with which a finding is still found, and the
// finding then: none of them can be left out. Build makes the program with some of the items; a program that cannot be
// made shows nothing. The finding counts as found if its faults still lead to its first difference.
func Shrink[T any](
	ctx context.Context, given []T, build func([]T) (Program, error), finding Finding, options Options,
) ([]T, Finding) {
	smallest := finding
	found := func(items []T) bool {
		program, err := build(items)
		if err != nil {
			return false
		}
		smaller, err := Run(ctx, program, finding.Faults, options)
		if err != nil || smaller == nil || smaller.Differences[0] != finding.Differences[0] {
			return false
		}
		smallest = *smaller
		return true
	}
	given = fewest(given, found)
	return given, smallest
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
