package inventory_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"

	"github.com/google/go-cmp/cmp"
)

func TestStatusIsDurableForKeysThatItHad(t *testing.T) {
	failed := ready(1)
	failed.Status = apis.ObjectFailed
	// Each save comes after those before it, in one request that began with two records.
	steps := []struct {
		why     string
		records []apis.InventoryRecord
		durable bool
	}{
		{"nothing changed", records(2, ready), true},
		{"only a content changed", []apis.InventoryRecord{ready(0), failed}, true},
		{"a key is new", records(3, ready), false},
		{"the status of this request has the key, but it is not written yet", records(3, ready), false},
		{"the new key is gone again", records(2, ready), true},
		{"a record is gone", records(1, ready), true},
		{"it is back, and the status that is written still has it", records(2, ready), true},
		{"all are gone", nil, true},
		{"only a new key", []apis.InventoryRecord{ready(3)}, false},
	}
	status := &apis.ComponentStatus{}
	for _, r := range records(2, ready) {
		status.Inventory = append(status.Inventory, inventory.Compact(r))
	}
	store := inventory.NewStatus(status)
	for _, step := range steps {
		durable, err := store.Save(t.Context(), step.records)
		if err != nil || durable != step.durable {
			t.Errorf("%s: durable is %v and the error %v, want %v and none", step.why, durable, err, step.durable)
		}
		if !inventory.Equal(status.Inventory, step.records) || !inventory.Equal(mustLoad(t, store), step.records) {
			t.Errorf("%s: the status has %v, want %v", step.why, status.Inventory, step.records)
		}
	}
}

func TestStatusStaysAsItIs(t *testing.T) {
	stored := records(3, ready)
	for i := range stored {
		stored[i] = inventory.Compact(stored[i])
	}
	status := &apis.ComponentStatus{Inventory: slices.Clone(stored)}
	before := &status.Inventory[0]
	reversed := records(3, ready)
	slices.Reverse(reversed)
	for _, given := range [][]apis.InventoryRecord{stored, records(3, ready), reversed} {
		mustSave(t, inventory.NewStatus(status), given)
		if &status.Inventory[0] != before || cmp.Diff(stored, status.Inventory) != "" {
			t.Errorf("the status was set to %v, want it left as it is", status.Inventory)
		}
	}
}

func TestStatusStoresWhatIsCompact(t *testing.T) {
	status := &apis.ComponentStatus{}
	given := records(1, ready)
	if _, err := inventory.NewStatus(status).Save(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apis.InventoryRecord{inventory.Compact(ready(0))}, status.Inventory); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	given[0].Name = "changed by the caller"
	if status.Inventory[0].Name == given[0].Name {
		t.Errorf("the status shares memory with the caller: it has the name %q, want the stored one",
			status.Inventory[0].Name)
	}
}

func TestStatusLoadSharesNoRoom(t *testing.T) {
	status := &apis.ComponentStatus{Inventory: records(4, ready)[:2]}
	loaded := mustLoad(t, inventory.NewStatus(status))
	_ = append(loaded, apis.InventoryRecord{Name: "intruder"})
	if status.Inventory[:3][2].Name == "intruder" {
		t.Error("what is appended to the loaded records lands in the status, want the room unused")
	}
}

func TestStatusRefusesWhatIsDoubtful(t *testing.T) {
	twice := append(records(2, ready), ready(0))
	status := &apis.ComponentStatus{Inventory: twice}
	if _, err := inventory.NewStatus(status).Load(t.Context()); err == nil ||
		!strings.HasPrefix(err.Error(), "cannot use the inventory in the status: record 2 of the inventory") {
		t.Errorf("the load ends with %v, want record 2 refused", err)
	}
	status = &apis.ComponentStatus{}
	if _, err := inventory.NewStatus(status).Save(t.Context(), twice); err == nil || status.Inventory != nil {
		t.Errorf("the save ends with %v and the status %v, want an error and none", err, status.Inventory)
	}
}

func TestStatusLimit(t *testing.T) {
	talkative := func(i int) apis.InventoryRecord {
		r := ready(i)
		r.Message = "it waits for something"
		return r
	}
	compact := func(all []apis.InventoryRecord) []apis.InventoryRecord {
		for i := range all {
			all[i] = inventory.Compact(all[i])
		}
		return all
	}
	save := func(t *testing.T, before, given []apis.InventoryRecord, limit int) (*apis.ComponentStatus, bool, error) {
		status := &apis.ComponentStatus{Inventory: compact(before)}
		store := inventory.NewStatus(status)
		store.Limit = limit
		durable, err := store.Save(t.Context(), given)
		return status, durable, err
	}
	const fits = 20 << 10
	t.Run("too large with a new record", func(t *testing.T) {
		status, durable, err := save(t, records(2, ready), records(200, talkative), fits)
		want := "cannot store the inventory in the status: its 200 records make 50 KiB, and at most 20 KiB fit: keep it in objects of its own"
		if err == nil || err.Error() != want || durable {
			t.Errorf("durable is %v and the error %v, want false and %q", durable, err, want)
		}
		if !inventory.Equal(status.Inventory, records(2, ready)) {
			t.Errorf("the status was changed to %d records, want the 2 from before", len(status.Inventory))
		}
	})
	t.Run("large enough without messages", func(t *testing.T) {
		status, durable, err := save(t, nil, records(75, talkative), fits)
		if err != nil || durable || !inventory.Equal(status.Inventory, records(75, ready)) {
			t.Errorf("durable is %v, the error %v and the records %d, want false, none and 75 without messages",
				durable, err, len(status.Inventory))
		}
	})
	t.Run("too large without a new record", func(t *testing.T) {
		status, durable, err := save(t, records(200, ready), records(199, record), fits)
		if err != nil || !durable || !inventory.Equal(status.Inventory, records(199, record)) {
			t.Errorf("durable is %v, the error %v and the records %d, want true, none and 199", durable, err,
				len(status.Inventory))
		}
	})
	t.Run("messages that do not fit change nothing", func(t *testing.T) {
		status := &apis.ComponentStatus{Inventory: compact(records(75, ready))}
		store := inventory.NewStatus(status)
		store.Limit = fits
		before := &status.Inventory[0]
		if durable, err := store.Save(t.Context(), records(75, talkative)); err != nil || !durable || &status.Inventory[0] != before {
			t.Errorf("durable is %v, the error %v and the status set anew: %v, want true, none and false", durable,
				err, &status.Inventory[0] != before)
		}
	})
	t.Run("by default", func(t *testing.T) {
		if _, _, err := save(t, nil, records(3000, ready), inventory.NewStatus(&apis.ComponentStatus{}).Limit); err != nil {
			t.Error(err)
		}
		if _, _, err := save(t, nil, records(5000, ready), inventory.DefaultLimit); err == nil {
			t.Error("5,000 records were taken, want an error")
		}
	})
}

func TestStatusRemove(t *testing.T) {
	status := &apis.ComponentStatus{Inventory: records(1, ready)}
	store := inventory.NewStatus(status)
	if err := store.Remove(t.Context()); err == nil || err.Error() != "cannot remove the inventory: it still has a record" {
		t.Errorf("the error is %v, want that the inventory still has a record", err)
	}
	mustSave(t, store, nil)
	if err := store.Remove(t.Context()); err != nil || status.Inventory != nil {
		t.Errorf("the error is %v and the status %v, want neither", err, status.Inventory)
	}
}

// What a record decides is durable once the status has said so.
func TestDecisionsAreDurableOnceWritten(t *testing.T) {
	for name, decide := range map[string]func(r *apis.InventoryRecord){
		"adopted":          func(r *apis.InventoryRecord) { r.Adopted = true },
		"purged":           func(r *apis.InventoryRecord) { r.PurgeOrder, r.Phase = new(int16), apis.PhaseScheduledForCompletion },
		"nothing new":      nil,
		"adopted no more":  nil,
		"message, as ever": func(r *apis.InventoryRecord) { r.Message = "it waits" },
	} {
		status := &apis.ComponentStatus{Inventory: records(2, ready)}
		status.Inventory[1].Adopted = name == "adopted no more"
		next := records(2, ready)
		if decide != nil {
			decide(&next[1])
		}
		want := name == "nothing new" || name == "message, as ever"
		for again := range 2 {
			durable, err := inventory.NewStatus(status).Save(t.Context(), next)
			if err != nil || durable != (want || again == 1) {
				t.Errorf("%s, request %d: durable is %v and the error %v, want %v and none", name, again+1, durable,
					err, want || again == 1)
			}
		}
	}
}
