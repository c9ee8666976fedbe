package plan

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordMessage is how long, in bytes, the message of a record may be: the inventory has to fit into an object.
const recordMessage = 200

// Fold returns the records as they are after the outcomes of operations of a plan with these records. A record whose object was
// orphaned is gone; any other stays until a plan is made with what was seen afterwards. The input is not changed.
func Fold(inventory []apis.InventoryRecord, outcomes []Outcome, now time.Time) []apis.InventoryRecord {
	records := slices.Clone(inventory)
	if len(outcomes) == 0 {
		return records
	}
	positions := make(map[Key]int, len(outcomes))
	for i := range outcomes {
		if outcomes[i].Operation.Pattern < 0 || outcomes[i].Operation.Action != ActionCheck {
			positions[outcomes[i].Operation.Key] = -1
		}
	}
	for i := range records {
		key := KeyOf(records[i])
		if position, wanted := positions[key]; wanted && position < 0 {
			positions[key] = i
		}
	}
	orphaned := map[int]bool{}
	for i := range outcomes {
		position, known := positions[outcomes[i].Operation.Key]
		if !known || position < 0 {
			continue
		}
		if gone := fold(&records[position], &outcomes[i], now); gone {
			orphaned[position] = true
		}
	}
	if len(orphaned) == 0 {
		return records
	}
	kept := records[:0]
	for i := range records {
		if !orphaned[i] {
			kept = append(kept, records[i])
		}
	}
	clear(records[len(kept):])
	return kept
}

// fold changes a record by what became of an operation, and tells whether the record goes.
func fold(r *apis.InventoryRecord, o *Outcome, now time.Time) (gone bool) {
	if o.Err != nil {
		r.Message = shorten(o.Err.Error(), recordMessage)
		return false
	}
	switch o.Operation.Action {
	case ActionCreate:
		written(r, o, apis.PhaseCreating, now)
	case ActionAdopt, ActionApply, ActionReplace:
		written(r, o, apis.PhaseUpdating, now)
	case ActionRecreate:
		r.UID = o.Operation.UID
		leaving(r, apis.PhaseRecreating)
	case ActionPurge:
		leaving(r, apis.PhaseCompleting)
	case ActionDelete:
		leaving(r, apis.PhaseDeleting)
	case ActionDeleteType:
		if o.Use.State == ForeignNone {
			leaving(r, apis.PhaseDeleting)
		} else {
			r.Message = shorten(o.Use.words(), recordMessage)
		}
	case ActionOrphan:
		if purging(r.Phase) {
			completed(r)
			return false
		}
		return true
	case ActionCheck:
	}
	return false
}

// written notes that the object was written.
func written(r *apis.InventoryRecord, o *Outcome, phase apis.InventoryPhase, now time.Time) {
	r.Phase, r.Status, r.Message = phase, apis.ObjectInProgress, ""
	r.LastAppliedAt = nil
	if o.Operation.Stamp {
		at := metav1.NewTime(now)
		r.LastAppliedAt = &at
	}
	if o.Observed.Presence != Present {
		// Whether the answer was lost or does not tell: the object is written once more if it turns out not to be as it should.
		r.Fields, r.Generation = "", 0
		return
	}
	r.UID, r.Generation, r.Fields = o.Observed.UID, o.Observed.Generation, o.Observed.Fields
	if r.Fields == "" {
		r.Fields = FieldsNone
	}
	if o.Observed.Status != "" {
		r.Status, r.Message = o.Observed.Status, shorten(o.Observed.Message, recordMessage)
	}
}

// leaving notes that the deletion of the object was asked for.
func leaving(r *apis.InventoryRecord, phase apis.InventoryPhase) {
	r.Phase, r.Status, r.Message = phase, apis.ObjectTerminating, ""
}

// completed notes that a purged object is gone, or no longer ours.
func completed(r *apis.InventoryRecord) {
	r.Phase, r.Status, r.Message = apis.PhaseCompleted, "", ""
	r.UID, r.Fields, r.Generation, r.LastAppliedAt = "", "", 0, nil
}

// purging tells whether an object is on its way to being purged.
func purging(phase apis.InventoryPhase) bool {
	return phase == apis.PhaseScheduledForCompletion || phase == apis.PhaseCompleting
}

// leavingComponent tells whether an object was on its way out of the component, or out with it.
func leavingComponent(phase apis.InventoryPhase) bool {
	return phase == apis.PhaseScheduledForDeletion || phase == apis.PhaseDeleting
}

// desire makes the record say what is desired of the object.
func desire(r *apis.InventoryRecord, d *Desired) {
	r.Group, r.Version, r.Kind = d.Group, d.Version, d.Kind
	r.Namespace, r.Name = d.Namespace, d.Name
	r.AdoptionPolicy = unless(d.AdoptionPolicy, apis.AdoptIfUnowned)
	r.ReconcilePolicy = unless(d.ReconcilePolicy, apis.ReconcileOnObjectChange)
	r.UpdatePolicy = unless(d.UpdatePolicy, apis.UpdateApply)
	r.DeletePolicy = unless(d.DeletePolicy, apis.DeleteDelete)
	r.PrunePolicy = unless(d.PrunePolicy, apis.PruneWith)
	r.ApplyOrder, r.DeleteOrder = d.ApplyOrder, d.DeleteOrder
	switch {
	case d.PurgeOrder == nil:
		r.PurgeOrder = nil
	case r.PurgeOrder == nil || *r.PurgeOrder != *d.PurgeOrder:
		order := *d.PurgeOrder
		r.PurgeOrder = &order
	}
	if !slices.Equal(r.ManagedTypes, d.ManagedTypes) {
		r.ManagedTypes = slices.Clone(d.ManagedTypes)
	}
	r.IgnoreForeignInstances = d.IgnoreForeignInstances
	if d.ReapplyInterval <= 0 || d.Digest == DigestOnce {
		r.LastAppliedAt = nil
	}
	unpurged := (purging(r.Phase) || r.Phase == apis.PhaseCompleted) && !purgeable(r)
	if r.Digest != d.Digest || r.Phase == "" || leavingComponent(r.Phase) || unpurged {
		r.Digest = d.Digest
		r.Phase, r.Status, r.Message = apis.PhaseScheduledForApplication, apis.ObjectInProgress, ""
	}
}

// undesire makes the record say that the object is not desired any more.
func undesire(r *apis.InventoryRecord) {
	if r.Digest == "" && leavingComponent(r.Phase) {
		return
	}
	r.Digest, r.LastAppliedAt = "", nil
	r.Phase, r.Status, r.Message = apis.PhaseScheduledForDeletion, apis.ObjectTerminating, ""
}

// take notes that the object seen is ours. Under another UID it is another object: generations count anew.
func take(r *apis.InventoryRecord, s *Observed) {
	if r.UID != s.UID {
		r.UID, r.Generation = s.UID, 0
	}
}

// unless returns value, or nothing if it is what is so by default, which records omit.
func unless[Policy ~string](value, byDefault Policy) Policy {
	if value == byDefault {
		return ""
	}
	return value
}

// shorten cuts text to at most limit bytes, and does not cut letters in half.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	if limit <= len(ellipsis) {
		return ellipsis[:max(limit, 0)]
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ,:;") + ellipsis
}
