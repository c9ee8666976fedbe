package gate_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/feature/gate"
)

func ExampleAll() {
	tracing := true
	for _, version := range []string{"2.3.0", "2.4.0-rc.1", "latest"} {
		on, err := gate.Enabled(gate.All(
			gate.When(tracing),
			gate.Version(version, ">= 2.4"),
		))
		fmt.Println(version, on, err)
	}
	// Output:
	// 2.3.0 false <nil>
	// 2.4.0-rc.1 true <nil>
	// latest false gate 1: version "latest" is invalid: invalid semantic version
}
