package inventory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
)

// memory is a store that is durable at once, unless it fails.
type memory struct {
	records []apis.InventoryRecord
	err     error
	removed bool
}

func (m *memory) Load(context.Context) ([]apis.InventoryRecord, error) { return m.records, nil }

func (m *memory) Save(_ context.Context, records []apis.InventoryRecord) (bool, error) {
	if m.err == nil {
		m.records = records
	}
	return m.err == nil, m.err
}

func (m *memory) Version() uint64 { return 1 }

func (m *memory) Remove(context.Context) error { m.removed = true; return nil }

// Whatever fails, each record is in the one store or the other.
func TestMove(t *testing.T) {
	status := &apis.ComponentStatus{Inventory: []apis.InventoryRecord{ready(1), ready(2)}}
	to := &memory{records: []apis.InventoryRecord{ready(3)}, err: errors.New("full")}
	moved := ready(2)
	moved.Phase = apis.PhaseDeleting
	to.records = append(to.records, moved)
	store := inventory.NewMove(to, status)

	records, err := store.Load(t.Context())
	if err != nil || !inventory.Equal(records, []apis.InventoryRecord{ready(1), moved, ready(3)}) {
		t.Errorf("the records are %v and the error %v, want three, the second one as it moved, and none", records, err)
	}
	if durable, err := store.Save(t.Context(), records); durable || err == nil || len(status.Inventory) != 2 {
		t.Errorf("durable is %v, the error %v and the status has %d records, want false, an error and 2", durable, err,
			len(status.Inventory))
	}
	if version := store.Version(); version != 0 {
		t.Errorf("the version while records move is %d, want 0", version)
	}
	if err := store.Remove(t.Context()); err == nil || to.removed {
		t.Errorf("with records in the status, the removal ends with %v and removed is %v, want an error and false",
			err, to.removed)
	}
	to.err = nil
	if durable, err := store.Save(t.Context(), records); !durable || err != nil || len(status.Inventory) != 0 || len(to.records) != 3 {
		t.Errorf("durable is %v, the error %v, and the stores have %d and %d records, want true, none, 0 and 3",
			durable, err, len(status.Inventory), len(to.records))
	}
	if records, err = store.Load(t.Context()); err != nil || len(records) != 3 {
		t.Errorf("the records are %v and the error %v, want 3 and none", records, err)
	}
	if err := store.Remove(t.Context()); err != nil || !to.removed {
		t.Errorf("the removal ends with %v and the objects are removed: %v, want no error and true", err, to.removed)
	}
}
