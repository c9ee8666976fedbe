package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/plan"
)

// record makes the keys of records durable before anything is done about their objects (law L2). It tells whether they are.
func (r *run) record(ctx context.Context, records []apis.InventoryRecord) (durable bool, err error) {
	added := 0
	for i := range records {
		if key := plan.KeyOf(records[i]); !r.stored[key] {
			added++
		}
	}
	if added == 0 {
		return true, nil
	}
	durable, err = r.Store.Save(ctx, records)
	if err != nil {
		return false, fmt.Errorf("unable to record %d objects before they are created: %w", added, err)
	}
	for i := range records {
		key := plan.KeyOf(records[i])
		if !r.stored[key] {
			r.Memory.note(key)
		}
		if durable {
			r.stored[key] = true
		}
	}
	if !durable {
		r.report.Recorded = added
	}
	return durable, nil
}

// withhold takes the purges out of a stage that are not recorded durably, and tells whether there were any. A process that died after
// such a purge would leave behind a record of an object that is yet to be created, and the next one would create it: a job would run
// twice.
func (r *run) withhold(p *plan.Plan) bool {
	withheld := map[plan.Key]bool{}
	for i := range p.Inventory {
		if record := &p.Inventory[i]; isPurging(record) && !r.purging[plan.KeyOf(*record)] {
			withheld[plan.KeyOf(*record)] = true
		}
	}
	if len(withheld) == 0 {
		return false
	}
	before := len(p.Next.Operations)
	p.Next.Operations = slices.DeleteFunc(slices.Clone(p.Next.Operations), func(o plan.Operation) bool {
		return (o.Action == plan.ActionPurge || o.Action == plan.ActionOrphan) && withheld[o.Key]
	})
	r.report.Recorded = before - len(p.Next.Operations)
	return r.report.Recorded > 0
}

func isPurging(record *apis.InventoryRecord) bool {
	return record.Phase == apis.PhaseScheduledForCompletion || record.Phase == apis.PhaseCompleting
}

func (r *run) save(ctx context.Context) error {
	if _, err := r.Store.Save(ctx, r.report.Inventory); err != nil {
		return fmt.Errorf("unable to save the inventory: %w", err)
	}
	return nil
}
