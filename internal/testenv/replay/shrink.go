package replay

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Shrink returns the fewest of the given objects with which a finding is still found, and the finding then: none of
// them can be left out. Build makes the program with some of the objects; a program that cannot be made shows nothing.
// The finding counts as found if its faults still lead to its first difference.
func Shrink(
	ctx context.Context, given []client.Object, build func([]client.Object) (Program, error),
	finding Finding, options Options,
) ([]client.Object, Finding) {
	smallest := finding
	found := func(objs []client.Object) bool {
		program, err := build(objs)
		if err != nil {
			return false
		}
		smaller, err := Run(ctx, program, finding.Faults, options)
		if err != nil || smaller == nil ||
			!slices.Equal(smaller.Differences[:1], finding.Differences[:1]) {
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
