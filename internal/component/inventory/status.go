package inventory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/digest"
)

// DefaultLimit is how large an inventory in a status may get, in bytes of JSON. The API server accepts objects of 1.5
// MiB. The rest of the resource has to fit, too, and the inventory still grows while the component is deleted.
const DefaultLimit = 900 << 10

var _ Store = (*Status)(nil)

// Status keeps an inventory in the status of the resource, which the caller writes after the request. A new one is made
// for each request; see [NewStatus].
//
// A record is durable once the status has been written: Save reports so for the keys that the status had when the store
// was made. A changed record of these keys need not be durable at once, because a lost change is observed in the
// cluster again. The exceptions are its [Decisions].
type Status struct {
	// Limit is how large the inventory may get, in bytes of JSON. Default: DefaultLimit.
	//
	// An inventory beyond it loses its messages. If it is still too large, new records are an error. An inventory
	// without new records is always stored, so that a large component can still be deleted.
	Limit int

	status *apis.ComponentStatus
	// before is what the status had when the store was made. durable has its keys and decisions; it is made when it is
	// needed.
	before  []apis.InventoryRecord
	durable map[plan.Key]Decisions
}

// NewStatus returns a store in a status as it was read.
func NewStatus(status *apis.ComponentStatus) *Status {
	return &Status{Limit: DefaultLimit, status: status, before: status.Inventory}
}

// Load implements [Store].
func (s *Status) Load(context.Context) ([]apis.InventoryRecord, error) {
	if err := Validate(s.status.Inventory); err != nil {
		return nil, fmt.Errorf("cannot use the inventory in the status: %w", err)
	}
	return s.status.Inventory[:len(s.status.Inventory):len(s.status.Inventory)], nil
}

// Save implements [Store]. It leaves the status as it is if that says the same.
func (s *Status) Save(_ context.Context, records []apis.InventoryRecord) (bool, error) {
	if Equal(s.status.Inventory, records) {
		return s.isDurable(s.status.Inventory, true), nil
	}
	records = compactAll(records)
	if err := Validate(records); err != nil {
		return false, fmt.Errorf("cannot store the inventory in the status: %w", err)
	}
	known, durable := s.isDurable(records, false), s.isDurable(records, true)
	size, err := sizeOf(records)
	if err != nil {
		return false, err
	}
	if size > s.Limit {
		for i := range records {
			records[i].Message = ""
		}
		if size, _ := sizeOf(records); size > s.Limit && !known {
			return false, fmt.Errorf("cannot store the inventory in the status: its %d records make %d KiB, "+
				"and at most %d KiB fit: keep it in objects of its own", len(records), size>>10, s.Limit>>10)
		}
		if Equal(s.status.Inventory, records) {
			return durable, nil
		}
	}
	s.status.Inventory = records
	return durable, nil
}

// sizeOf is how many bytes of JSON records make.
func sizeOf(records []apis.InventoryRecord) (int, error) {
	raw, err := json.Marshal(records)
	return len(raw), err
}

// isDurable reports whether all keys of records were in the status when the store was made, and also, if asked for,
// their decisions.
func (s *Status) isDurable(records []apis.InventoryRecord, decisions bool) bool {
	if len(records) == 0 || len(records) == len(s.before) && &records[0] == &s.before[0] {
		return true
	}
	if s.durable == nil {
		s.durable = make(map[plan.Key]Decisions, len(s.before))
		for i := range s.before {
			s.durable[plan.KeyOf(s.before[i])] = DecisionsOf(&s.before[i])
		}
	}
	for i := range records {
		before, ok := s.durable[plan.KeyOf(records[i])]
		if !ok || decisions && !before.Have(&records[i]) {
			return false
		}
	}
	return true
}

// Remove implements [Store]. There is nothing to remove but an inventory without records.
func (s *Status) Remove(context.Context) error {
	if n := len(s.status.Inventory); n > 0 {
		return stillThere(n)
	}
	s.status.Inventory = nil
	return nil
}

// Version implements [Store]. It is a digest of the records in the status.
func (s *Status) Version() uint64 {
	sum, known := digest.Of(s.status.Inventory)
	if !known {
		return 0
	}
	return sum | 1
}
