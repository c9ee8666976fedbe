package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// awaitLimit is how long AwaitDeleted waits at most. A watch shows a deletion within a few milliseconds.
	awaitLimit = 50 * time.Millisecond
	awaitStep  = time.Millisecond
)

// AwaitDeleted implements [Observer].
func (w *Watching) AwaitDeleted(ctx context.Context, c Component) (watched bool) {
	settled := func(context.Context) (done bool, _ error) {
		watched, done = w.showsDeleted(&c)
		return done || !watched, nil
	}
	_ = wait.PollUntilContextTimeout(ctx, awaitStep, awaitLimit, true, settled) // the next Observe says what is left
	return watched
}

// showsDeleted reports whether open watches cover all objects of a component, and whether they show all deletions of
// its own.
func (w *Watching) showsDeleted(c *Component) (watched, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lookUp(c)
	if s == nil || w.stopped {
		return false, false
	}
	all = true
	for _, e := range s.entries {
		if e.slot == nil {
			// Two entries of one object may end together.
			continue
		}
		if e.typ.phase != live || e.typ.stream == nil {
			return false, false
		}
		all = all && e.deletion == nil
	}
	return true, all
}
