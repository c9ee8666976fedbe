package replay

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are how a program is explored.
type Options struct {
	// Requests is how many requests a run without a fault may take until it is at rest; 0 is 20. A run with a fault may
	// take twice as many.
	Requests int
	// Skip leaves faults out; nil none.
	Skip func(Fault) bool
	// Ignore reports differences at the end that do not matter, by object and field path, such as
	// "ConfigMap ns/one: data.attempts"; nil none.
	Ignore func(object, path string) bool
	// Share explores each n-th fault only; 0 and 1 all.
	Share int
	// Pairs explores two faults in one run too.
	Pairs bool
}

// Report is what was found.
type Report struct {
	// Replays is how many runs with a fault were made.
	Replays int
	// NotReplayed says why there were none; empty if there were.
	NotReplayed string
	// Findings are in the order of the calls.
	Findings []Finding
}

// Finding is a run that ended in another way than the run without a fault.
type Finding struct {
	Faults []Fault
	// Story has the requests of the run in one line: "get App a · create ConfigMap one · † · get App a · rest".
	Story string
	// Differences say what is wrong at the end, a line each: "missing: ConfigMap ns/two".
	Differences []string
}

// Explore runs a program without a fault and with each.
func Explore(ctx context.Context, program Program, options Options) (Report, error) { panic("TODO") }

// Run runs a program once with the faults, and compares the end with that of a run without them. Nil says that they end
// alike.
func Run(ctx context.Context, program Program, faults []Fault, options Options) (*Finding, error) {
	panic("TODO")
}

// Shrink returns the fewest of the given objects with which a finding is still found, and the finding then. Build makes
// the program with some of the objects; a program that cannot be made shows nothing.
func Shrink(
	ctx context.Context, given []client.Object, build func([]client.Object) (Program, error),
	finding Finding, options Options,
) ([]client.Object, Finding) {
	panic("TODO")
}
