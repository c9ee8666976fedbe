package replay

import (
	"context"

	"github.com/espalier-dev/espalier/internal/fault"
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
	given = fault.Fewest(given, found)
	return given, smallest
}
