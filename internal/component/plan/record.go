package plan

import (
	"cmp"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordMessageLimit is the length of the longest message of a record, in bytes: the inventory has to fit into an
// object.
const recordMessageLimit = 200

func recordMessage(text string) string {
	return message.Truncate(text, recordMessageLimit)
}

// Fold returns the records as they are after the outcomes of a stage. Keys of outcomes are unique. The record of an
// object that was orphaned is gone. Any other record stays until a plan is made with what is observed afterwards. The
// input is not changed.
func Fold(inventory []apis.InventoryRecord, outcomes []Outcome, now time.Time) []apis.InventoryRecord {
	byKey := make(map[Key]*Outcome, len(outcomes))
	for i := range outcomes {
		// The key of a pattern is not the key of an object.
		if o := &outcomes[i].Operation; o.Action != ActionCheck || o.Pattern < 0 {
			byKey[o.Key] = &outcomes[i]
		}
	}
	records := make([]apis.InventoryRecord, 0, len(inventory))
	for i := range inventory {
		records = append(records, inventory[i])
		key := KeyOf(inventory[i])
		if o := byKey[key]; o != nil {
			// If there are two records of a key, the first one counts.
			delete(byKey, key)
			if gone := recordOutcome(&records[len(records)-1], o, now); gone {
				records = records[:len(records)-1]
			}
		}
	}
	return records
}

// recordOutcome changes the record by the outcome of an operation. It reports whether the record is dropped.
func recordOutcome(r *apis.InventoryRecord, o *Outcome, now time.Time) (gone bool) {
	if o.Err != nil {
		r.Message = recordMessage(o.Err.Error())
		return false
	}
	switch o.Operation.Action {
	case ActionCreate:
		recordWrite(r, o, apis.PhaseCreating, now)
	case ActionAdopt, ActionRelabel, ActionApply, ActionReplace:
		recordWrite(r, o, apis.PhaseUpdating, now)
	case ActionRecreate:
		r.UID = o.Operation.UID
		recordDeletion(r, apis.PhaseRecreating)
	case ActionPurge:
		recordDeletion(r, apis.PhaseCompleting)
	case ActionDelete:
		recordDeletion(r, apis.PhaseDeleting)
	case ActionDeleteType, ActionDeleteNamespace:
		if o.Use.State == ForeignNone {
			recordDeletion(r, apis.PhaseDeleting)
		} else {
			r.Message = recordMessage(o.Use.words())
		}
	case ActionOrphan:
		if !isPurging(r.Phase) {
			return true
		}
		recordPurged(r)
	case ActionCheck:
	}
	return false
}

// recordWrite records that the object was written.
func recordWrite(r *apis.InventoryRecord, o *Outcome, phase apis.InventoryPhase, now time.Time) {
	r.Phase, r.Status, r.Message = phase, apis.ObjectInProgress, ""
	r.LastAppliedAt = nil
	if o.Operation.Stamp {
		r.LastAppliedAt = new(metav1.NewTime(now))
	}
	if o.Observed.Presence != Present {
		// The answer was lost, or does not have the object. Without fields, the object is written once more.
		r.Fields, r.Generation = "", 0
		return
	}
	r.UID, r.Generation, r.Fields = o.Observed.UID, o.Observed.Generation, cmp.Or(o.Observed.Fields, FieldsNone)
	if o.Observed.Status != "" {
		r.Status, r.Message = o.Observed.Status, recordMessage(o.Observed.Message)
	}
}

// recordDeletion records that the deletion of the object was requested.
func recordDeletion(r *apis.InventoryRecord, phase apis.InventoryPhase) {
	r.Phase, r.Status, r.Message = phase, apis.ObjectTerminating, ""
}

// recordPurged records that a purged object is gone, or no longer ours.
func recordPurged(r *apis.InventoryRecord) {
	r.Phase, r.Status, r.Message = apis.PhaseCompleted, "", ""
	r.UID, r.Fields, r.Generation, r.LastAppliedAt = "", "", 0, nil
}
