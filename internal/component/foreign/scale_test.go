//go:build !race

package foreign_test

// Numbers of tests without the race detector, which makes code some ten times slower.
const (
	// rounds is how often a type is removed while others create instances. A round differs from the next two.
	rounds = 12
	// crashStep is the distance between two crashes that are tried.
	crashStep = 1
)
