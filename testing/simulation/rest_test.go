package simulation_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestRestIsAfterTrouble has an API server that restarts for longer than a cluster takes to come to rest. A cluster in
// which nothing changes because nobody can change it is not at rest.
func TestRestIsAfterTrouble(t *testing.T) {
	options := simulation.Options{Operator: web}
	options.Plan.Faults = []simulation.Fault{
		{Kind: simulation.Restarts, Verb: "create", Path: "/apis/apps/*/*/*/deployments/web", Delay: time.Hour},
	}
	simulation.Run(t, options, func(w *simulation.World) {
		w.Create(configMap("web", "x"))
		w.Rest()
		if n := len(w.Happened()); n != 1 {
			w.Errorf("%d faults struck", n)
		}
		if !w.Exists(deployment("web")) {
			w.Error("the cluster is said to be at rest, and the operator has not done its work")
		}
	})
}
