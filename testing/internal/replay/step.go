package replay

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Step is something that others do while the code is at rest.
type Step struct {
	// Name is what stories and differences call it, such as "upgrade".
	Name string
	// Do works with World.As and World.Store: no instance of the code makes its calls, and World.Client returns
	// context.Canceled. An error of a run without a fault ends the exploration; of another it is a difference.
	Do func(ctx context.Context, w *World) error
}

// Invariant says what a call of the code broke by what it changed, such as "the type is in use"; empty if nothing. The
// store is that of the cluster as the call left it, and must not be changed. Changes are never empty.
//
// What the control plane does after a request is checked too, at once, with a call that is zero: it deletes what has no
// owner any more, and the instances of a definition that is being deleted.
type Invariant func(s *store.Store, made store.Call, changes []store.Change) string

// doStep has others do a step.
func (r *run) doStep(ctx context.Context, step Step) error {
	nobody := newInstance(ctx)
	nobody.die()
	if err := step.Do(ctx, &World{run: r, instance: nobody}); err != nil {
		return fmt.Errorf("%s: %w", step.Name, err)
	}
	r.step = step.Name
	return nil
}

// collectGarbage has the control plane of a cluster act, and checks what it did.
func (r *run) collectGarbage(c *cluster) {
	before := c.store.Revision()
	if c.store.CollectGarbage() {
		r.check(&call{cluster: c, name: "garbage collection" + fault.In(c.name), changes: c.store.Changes(before)})
	}
}

// check notes what a call broke.
func (r *run) check(call *call) {
	if r.program.Invariant == nil {
		return
	}
	if broken := r.program.Invariant(call.cluster.store, call.Call, call.changes); broken != "" {
		r.broken = append(r.broken, call.name+": "+broken)
	}
}
