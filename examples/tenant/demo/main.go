// Command demo shows the operator for tenants at work: on a control plane that it starts itself, or, with
// USE_EXISTING_CLUSTER=true, on the cluster of the current kubeconfig, which it leaves as it was.
package main

import (
	"github.com/espalier-dev/espalier/examples/tenant/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

var tenants = demo.Demo{
	Title: "An operator for tenants",
	Users: []string{scenario.OperatorUser, scenario.HubUser},
	Open:  scenario.Open,
}

func main() { tenants.Main() }
