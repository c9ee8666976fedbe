package inventory

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

var _ Store = (*Move)(nil)

// Move is a store that takes over the records of a status, for a component that kept its inventory there before. At any
// time a record is in at least one of the two.
type Move struct {
	to     Store
	status *apis.ComponentStatus
}

// NewMove returns a store of the records in to and the records that are still in the status. It saves all of them to
// to.
func NewMove(to Store, status *apis.ComponentStatus) *Move {
	return &Move{to: to, status: status}
}

// Load implements [Store]. Where both have a record, the one that was moved counts.
func (m *Move) Load(ctx context.Context) ([]apis.InventoryRecord, error) {
	records, err := m.to.Load(ctx)
	if err != nil || len(m.status.Inventory) == 0 {
		return records, err
	}
	left, err := NewStatus(m.status).Load(ctx)
	if err != nil {
		return nil, err
	}
	moved := Keys(records)
	records = slices.Clone(records)
	for i := range left {
		if _, ok := moved[plan.KeyOf(left[i])]; !ok {
			records = append(records, left[i])
		}
	}
	return records, nil
}

// Save implements [Store]. The status loses its records once they are durable elsewhere.
func (m *Move) Save(ctx context.Context, records []apis.InventoryRecord) (durable bool, err error) {
	durable, err = m.to.Save(ctx, records)
	if err == nil && durable {
		m.status.Inventory = nil
	}
	return durable, err
}

// Remove implements [Store].
func (m *Move) Remove(ctx context.Context) error {
	if n := len(m.status.Inventory); n > 0 {
		return stillThere(n)
	}
	return m.to.Remove(ctx)
}

// Version implements [Store]. Nothing is known as long as records move.
func (m *Move) Version() uint64 { return 0 }
