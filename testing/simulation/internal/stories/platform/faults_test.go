package platform_test

import (
	"testing"

	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestL11Faults tells a short story of a platform with a fault at each request of the operator, one at a time: the
// platform is installed and deleted.
func TestL11Faults(t *testing.T) {
	e := newEnds()
	simulation.RunFaults(t, cluster(t), func(w *simulation.World) {
		w.Create(newPlatform(controller.Version1))
		w.Rest()
		migrate(w, controller.Version1)
		show(w)
		isReady(w, 8)
		e.installed.Compare(w)
		w.Delete(newPlatform(""))
		w.Rest()
		if w.Exists(newPlatform("")) || w.Exists(theType()) {
			w.Error("what was deleted is still there")
		}
		e.gone.Compare(w)
	})
}

// TestLifeBesideOthers tells the story with one operator, with two at once, for no leader is elected, and with somebody
// who writes to the platform before two of three writes of its status. It has to end in the same state each time.
func TestLifeBesideOthers(t *testing.T) {
	two, conflicts := cluster(t), cluster(t)
	two.Replicas = 2
	for nth := 1; nth < 100; nth += 12 {
		conflicts.Plan.Faults = append(conflicts.Plan.Faults, simulation.Fault{
			Kind: simulation.Conflicts, Path: "/apis/*/*/namespaces/*/platforms/*/status", Nth: nth, Times: 8,
		})
	}
	e := newEnds()
	for _, row := range []struct {
		name    string
		options simulation.Options
	}{
		{"one operator", cluster(t)}, {"two operators at once", two}, {"a storm of status conflicts", conflicts},
	} {
		t.Run(row.name, func(t *testing.T) {
			simulation.Run(t, row.options, func(w *simulation.World) {
				life(w, e)
				struck := len(w.Happened())
				if wanted := len(row.options.Plan.Faults) > 0; wanted != (struck > 0) {
					w.Errorf("%d faults struck, want some: %t", struck, wanted)
				}
			})
		})
	}
}
