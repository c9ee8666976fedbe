package page

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/objectname"
)

// maxOperations limits how many operations and obstacles of a component are kept.
const maxOperations = 50

// progressRecord is how a component was after a request. It is never changed once the request has ended.
type progressRecord struct {
	// path is that of the node, with the keys of items.
	path string
	slot int
	when time.Time

	state     apis.ComponentState
	reason    string
	message   string
	since     time.Time
	revision  int64
	next      []component.Operation
	obstacles []component.Obstacle
	// omitted is how many operations and obstacles there was no room for.
	omitted   int
	inventory *inventory
	// plan makes a fresh plan; nil if that is not possible.
	plan func(ctx context.Context) (*component.Plan, error)
}

// inventory has the objects of a component.
type inventory struct {
	// rows is nil if there was no room for them.
	rows []row
	// waves count the objects, in the order in which they are applied.
	waves []waveRecord
	total int
	// holds is true as long as the rows take room.
	holds atomic.Bool
}

// row is an object of a component.
type row struct {
	group, kind, namespace, name string
	phase                        apis.InventoryPhase
	status                       apis.ObjectStatus
	message                      string
	applyOrder, deleteOrder      int16
}

// waveRecord counts the objects of a wave.
type waveRecord struct {
	order int16
	total int
	// ready are those that are as they are to be, or done with.
	ready int
	// active are those that are written and not ready, or deleted and not gone.
	active int
	// failed are those that could not be written, or whose status says that they failed.
	failed int
}

// objectName is how an [component.Obstacle] and an [component.Operation] name an object.
func (r *row) objectName() string {
	return objectname.Text(r.kind, r.namespace, r.name)
}

// wavePart is what an object means for its wave.
type wavePart int

const (
	partPlanned wavePart = iota
	partActive
	partFailed
	partReady
)

func (r *row) part() wavePart {
	record := apis.InventoryRecord{Phase: r.phase, Status: r.status}
	switch {
	case r.status == apis.ObjectFailed:
		return partFailed
	case record.IsDone():
		return partReady
	case r.phase == apis.PhaseScheduledForApplication, r.phase == apis.PhaseScheduledForDeletion,
		r.phase == apis.PhaseScheduledForCompletion:
		return partPlanned
	}
	return partActive
}

// progressOf keeps a fact. What has not changed since the record before is shared with it.
func progressOf(before *progressRecord, fact *component.Progress, room *atomic.Int64) *progressRecord {
	made := &progressRecord{
		state: fact.State, reason: fact.Reason, message: fact.Message, since: fact.Since, revision: fact.Revision,
		next: fact.Next, obstacles: fact.Obstacles, plan: fact.Plan,
	}
	if n := len(made.next) - maxOperations; n > 0 {
		made.next, made.omitted = made.next[:maxOperations], made.omitted+n
	}
	if n := len(made.obstacles) - maxOperations; n > 0 {
		made.obstacles, made.omitted = made.obstacles[:maxOperations], made.omitted+n
	}
	made.message = message.Truncate(made.message, maxText)
	made.next, made.obstacles = slices.Clone(made.next), slices.Clone(made.obstacles)
	for i := range made.next {
		made.next[i].Reason = message.Truncate(made.next[i].Reason, maxWriteText)
	}
	for i := range made.obstacles {
		made.obstacles[i].Message = message.Truncate(made.obstacles[i].Message, maxWriteText)
	}
	var known *inventory
	if before != nil {
		known = before.inventory
	}
	if made.inventory = known; known == nil || fact.Inventory != nil || fact.State == "" {
		made.inventory = inventoryOf(known, fact.Inventory, room)
	}
	return made
}

// inventoryOf returns known if it has the same objects, or else a new one.
func inventoryOf(known *inventory, records []apis.InventoryRecord, room *atomic.Int64) *inventory {
	if known.has(records) {
		return known
	}
	made := &inventory{total: len(records)}
	if keeps := room.Add(-int64(len(records))) >= 0; keeps {
		made.rows = make([]row, 0, len(records))
		made.holds.Store(true)
	} else {
		room.Add(int64(len(records)))
	}
	counts := map[int16]*waveRecord{}
	for i := range records {
		r := rowOf(&records[i])
		if made.rows != nil {
			made.rows = append(made.rows, r)
		}
		w := counts[r.applyOrder]
		if w == nil {
			w = &waveRecord{order: r.applyOrder}
			counts[r.applyOrder] = w
		}
		w.add(&r)
	}
	for _, w := range counts {
		made.waves = append(made.waves, *w)
	}
	slices.SortFunc(made.waves, func(a, b waveRecord) int { return cmp.Compare(a.order, b.order) })
	return made
}

func rowOf(record *apis.InventoryRecord) row {
	return row{
		group: record.Group, kind: record.Kind, namespace: record.Namespace, name: record.Name,
		phase: record.Phase, status: record.Status, message: message.Truncate(record.Message, maxWriteText),
		applyOrder: record.ApplyOrder, deleteOrder: record.DeleteOrder,
	}
}

func (w *waveRecord) add(r *row) {
	w.total++
	switch r.part() {
	case partReady:
		w.ready++
	case partActive:
		w.active++
	case partFailed:
		w.failed++
	}
}

// has reports whether an inventory has just these objects.
func (i *inventory) has(records []apis.InventoryRecord) bool {
	if i == nil || len(i.rows) != len(records) || i.rows == nil {
		return false
	}
	for at := range records {
		if i.rows[at] != rowOf(&records[at]) {
			return false
		}
	}
	return true
}

// release gives back the room of an inventory that is not kept any more. Another call does nothing.
func (i *inventory) release(room *atomic.Int64) {
	if i.holds.CompareAndSwap(true, false) {
		room.Add(int64(len(i.rows)))
	}
}
