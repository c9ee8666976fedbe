package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/informer"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is kept of a component from request to request. Losing it costs a few reads. The zero value is empty.
type Memory struct {
	// fresh are the records that this process made, of objects that it did not try to create since, or whose creation
	// was refused. Such an object cannot exist unseen, unless another process created it.
	fresh map[plan.Key]bool
	// namespaces has the namespaces that were found or created, by name.
	namespaces map[string]bool
	// refusals are the types whose fence failed.
	refusals map[plan.Key]refusal
	// unsaved are the records of objects that this process created, or may have, and of which the stored inventory does
	// not say that they exist. Another process may have dropped them.
	unsaved []apis.InventoryRecord
	// corrections has what is known of the corrections of objects, by key.
	corrections map[plan.Key]plan.Corrections
	// calledBeforeDelete reports whether BeforeDelete was called for a deletion that goes on.
	calledBeforeDelete bool
	// unchanged is set if the last run left nothing to do.
	unchanged *unchanged
	// Manifests remembers what was prepared.
	Manifests manifest.Cache
}

// Move forgets what does not hold when the component is deployed with another client, to the same cluster or to
// another.
func (m *Memory) Move(sameCluster bool) {
	// What was prepared does not depend on the cluster.
	moved := Memory{Manifests: m.Manifests}
	if sameCluster {
		moved.corrections, moved.unsaved = m.corrections, m.unsaved
	}
	*m = moved
}

// setFresh marks a recorded object as not created by this process.
func (m *Memory) setFresh(key plan.Key) {
	if m.fresh == nil {
		m.fresh = map[plan.Key]bool{}
	}
	m.fresh[key] = true
}

// contested reports whether another client keeps changing a desired object. It is then not asked how ready it is, since
// each change would cost a request.
func (m *Memory) contested(desired *plan.Desired, now time.Time) bool {
	c, known := m.corrections[desired.Key]
	return known && c.Digest == desired.Digest && c.Persistent && !c.Forgotten(now)
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

// forget drops what is known of corrections that do not count any more.
func (m *Memory) forget(now time.Time) {
	maps.DeleteFunc(m.corrections, func(_ plan.Key, c plan.Corrections) bool { return c.Forgotten(now) })
}

// setCorrections stores what is known of the corrections of an object.
func (m *Memory) setCorrections(key plan.Key, c plan.Corrections) {
	if m.corrections == nil {
		m.corrections = map[plan.Key]plan.Corrections{}
	}
	m.corrections[key] = c
}

// unchanged is what is kept of a run that left nothing to do and nothing to wait for.
type unchanged struct {
	// reapply is when an object is to be rewritten; zero for never.
	reapply time.Time
	// inventory is the version of the inventory.
	inventory uint64
}

// Unchanged returns the report of a run with the task of the last one, if that run left nothing to do and nothing can
// have changed since; else nil. Nothing has changed if the inventory is the same, the observer has no news, and no
// object is due to be rewritten. Unchanged makes no request, and its cost does not depend on the number of objects,
// unless the inventory is in the status. The report has no inventory and no input.
func (e *Engine) Unchanged(now time.Time) *Report {
	r := e.Memory.unchanged
	if r == nil || !r.reapply.IsZero() && !now.Before(r.reapply) ||
		r.inventory != e.Store.Version() || !e.Observer.Unchanged(e.Component) {
		return nil
	}
	// The inventory that was found is the one of the last run.
	e.Memory.unsaved = nil
	return &Report{Unchanged: true, Plan: plan.Plan{Done: true, Reapply: r.reapply}}
}

// unchanged returns what to keep of the run, nil if another run might do or find out something else.
func (r *run) unchanged() *unchanged {
	report, version := r.report, r.Store.Version()
	if r.task.Deleting || r.task.DryRun || r.fenced || version == 0 || !report.Plan.Done || report.Recorded > 0 ||
		report.Waits || !report.Plan.Recheck.IsZero() || r.Memory.anyContested(r.task.Now) ||
		len(r.in.Failed) > 0 || len(report.Syncing) > 0 || len(report.Polled) > 0 {
		return nil
	}
	return &unchanged{reapply: report.Plan.Reapply, inventory: version}
}

// recallUnsaved returns the stored inventory with the records that another process has dropped.
func (r *run) recallUnsaved(stored []apis.InventoryRecord) []apis.InventoryRecord {
	if len(r.Memory.unsaved) == 0 {
		return stored
	}
	known := make(map[plan.Key]types.UID, len(stored))
	for i := range stored {
		known[plan.KeyOf(stored[i])] = stored[i].UID
	}
	r.unsaved = map[plan.Key]bool{}
	all := slices.Clip(stored)
	for _, record := range r.Memory.unsaved {
		key := plan.KeyOf(record)
		uid, ok := known[key]
		if !ok {
			all = append(all, record)
		}
		if uid == "" {
			r.unsaved[key] = true
		}
	}
	return all
}

// keepUnsaved keeps the records of what the run created until they are found stored.
func (r *run) keepUnsaved() {
	r.Memory.unsaved = nil
	if len(r.unsaved) == 0 {
		return
	}
	r.Memory.unsaved = make([]apis.InventoryRecord, 0, len(r.unsaved))
	for _, record := range r.report.Inventory {
		if r.unsaved[plan.KeyOf(record)] {
			r.Memory.unsaved = append(r.Memory.unsaved, record)
		}
	}
}

// Undo deletes what this process created, or may have, and has not found stored since. It is for a component that has
// ended during the last Run. What has to wait until another object is gone stays. Undo waits for the margins of fences,
// since no request comes back to a component that has ended.
func (e *Engine) Undo(ctx context.Context, now time.Time) error {
	undone := *e
	undone.Store = inventory.NewStatus(&apis.ComponentStatus{Inventory: e.Memory.unsaved})
	for try := 1; ; try++ {
		report, err := undone.Run(ctx, Task{Deleting: true, Now: now})
		until := now
		for _, use := range report.Input.Uses {
			if use.Until.After(until) {
				until = use.Until
			}
		}
		if err != nil || until.Equal(now) || try == undoTries {
			return err
		}
		informer.Pause(ctx, until.Sub(now))
		now = until
	}
}

// undoTries is how often Undo waits for a fence: before the deletion, and once more if others wrote meanwhile.
const undoTries = 3
