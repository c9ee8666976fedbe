package tenant_test

import (
	"testing"

	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// TestLife tells the story under plans of many seeds. It has to end in the same state each time.
func TestLife(t *testing.T) {
	before, after := &stories.End{Kinds: kinds}, &stories.End{Kinds: kinds}
	var struck stories.Struck
	t.Cleanup(func() { t.Log(struck.String()) })
	simulation.RunSeeds(t, cluster(t), func(w *simulation.World) {
		life(w, before, after)
		struck.Count(w)
	})
}
