// Command demo shows the operator for platforms at work: on a control plane that it starts itself, or, with
// USE_EXISTING_CLUSTER=true, on the cluster of the current kubeconfig, which it leaves as it was. There, it leaves out
// the steps of the search, because the cluster has a controller of Deployments.
package main

import (
	"github.com/espalier-dev/espalier/examples/platform/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

var platforms = demo.Demo{
	Title: "An operator for platforms",
	Users: []string{scenario.OperatorUser},
	Open:  scenario.Open,
}

func main() { platforms.Main() }
