//go:build !race

package inventory_test

// Sizes of tests without the race detector, which makes code some ten times slower.
const (
	// many is how many records a large inventory has.
	many = 10_000
	// seeds is how many random runs there are.
	seeds = 20
)
