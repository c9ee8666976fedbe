// Command deliveries shows the operator that delivers software at work, on two clusters.
package main

import (
	"github.com/espalier-dev/espalier/examples/demo/internal/inprocess"
	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(inprocess.Start, delivery.Demo) }
