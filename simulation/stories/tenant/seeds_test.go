package tenant_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/simulation"
	"github.com/espalier-dev/espalier/simulation/faults"
	"github.com/espalier-dev/espalier/simulation/stories"
)

var seeds = flag.Int("seeds", 20, "")
var firstSeed = flag.Int("seed", 0, "")

func TestSeeds(t *testing.T) {
	before, after := &stories.End{Kinds: kinds}, &stories.End{Kinds: kinds}
	tell := func(t *testing.T, plan faults.Plan) {
		dir := &directory.Memory{}
		options := cluster(t, dir)
		options.Plan = plan
		simulation.Run(t, options, func(w *simulation.World) { life(w, dir, before, after) })
	}
	tell(t, faults.Plan{})
	for n := *firstSeed; n < *firstSeed+*seeds; n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			t.Parallel()
			tell(t, faults.FromSeed(uint64(n), faults.Options{Actors: []string{simulation.Operator}}))
		})
	}
}
