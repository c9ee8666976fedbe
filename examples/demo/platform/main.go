// Command platform shows the operators of the example platform at work: the one for platforms, and the one that
// delivers software, on two clusters.
package main

import (
	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(platform.Demo, delivery.Demo) }
