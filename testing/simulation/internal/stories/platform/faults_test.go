package platform_test

import (
	"testing"

	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestFaults tells a short story of a platform with a fault at each request of the operator, one at a time (L11): the
// platform is installed and deleted.
func TestFaults(t *testing.T) {
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
