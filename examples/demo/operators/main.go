// Command operators shows the operators for tenants and for platforms at work.
package main

import (
	"github.com/espalier-dev/espalier/examples/demo/internal/inprocess"
	platform "github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	tenant "github.com/espalier-dev/espalier/examples/tenant/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(inprocess.Start, tenant.Demo, platform.Demo) }
