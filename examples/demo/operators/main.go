// Command operators shows the operator for platforms at work.
package main

import (
	"github.com/espalier-dev/espalier/examples/demo/internal/inprocess"
	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(inprocess.Start, platform.Demo) }
