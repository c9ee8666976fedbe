// Command demo shows the operator that delivers software at work, on two control planes that it starts itself. With
// USE_EXISTING_CLUSTER=true it works on the cluster of the current kubeconfig, which it leaves as it was. There is no
// second cluster then, and it leaves out the steps of the agent.
package main

import (
	"github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

var deliveries = demo.Demo{
	Title:  "An operator that delivers a chart and a kustomization",
	Users:  []string{scenario.OperatorUser},
	Second: true,
	Open:   scenario.Open,
}

func main() { deliveries.Main() }
