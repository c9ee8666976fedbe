package engine

import (
	"time"

	"github.com/espalier-dev/espalier/internal/component/plan"
)

// rest is what is kept of a run that left nothing to do and nothing to wait for.
type rest struct {
	// reapply is when an object is to be rewritten; zero for never.
	reapply time.Time
	// inventory is the version of the inventory.
	inventory uint64
}

// AtRest returns the report of a run with the task of the last one, if that run left nothing to do and nothing can have
// changed since; else nil. Nothing has changed if the inventory is the same, the observer has no news, and no object is
// due to be rewritten. AtRest makes no request, and its cost does not depend on the number of objects, unless the
// inventory is in the status. The report has no inventory and no input.
func (e *Engine) AtRest(now time.Time) *Report {
	r := e.Memory.rest
	if r == nil || !r.reapply.IsZero() && !now.Before(r.reapply) ||
		r.inventory != e.Store.Version() || !e.Observer.Unchanged(e.Component) {
		return nil
	}
	return &Report{AtRest: true, Plan: plan.Plan{Done: true, Reapply: r.reapply}}
}

// anyContested reports whether another client keeps changing an object. How often it is corrected depends on the time.
func (m *Memory) anyContested(now time.Time) bool {
	for _, c := range m.corrections {
		if c.Persistent && !c.Forgotten(now) {
			return true
		}
	}
	return false
}

// rest returns what to keep of the run, nil if another run might do or find out something else.
func (r *run) rest() *rest {
	report, version := r.report, r.Store.Version()
	if r.task.Deleting || r.task.DryRun || r.fenced || version == 0 || !report.Plan.Done || report.Recorded > 0 ||
		report.Waits || !report.Plan.Recheck.IsZero() || r.Memory.anyContested(r.task.Now) ||
		len(r.in.Failed) > 0 || len(report.Syncing) > 0 || len(report.Polled) > 0 {
		return nil
	}
	return &rest{reapply: report.Plan.Reapply, inventory: version}
}
