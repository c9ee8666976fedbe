package plan

import (
	"github.com/espalier-dev/espalier/apis"
)

const (
	reasonPurge      = "it was only needed for a while"
	reasonPurgeAgain = "it was purged, and is there again"
)

// purge decides about an object that is to be purged.
func (it *item) purge() {
	r, s := it.record, &it.seen
	switch {
	case s.Presence == PresenceUnknown:
		it.unseen = true
		it.pause(messageUnseen)
	case s.Presence == Absent || s.Ownership != Ours:
		// Whoever has it now, it is not ours to delete.
		completed(r)
		it.state = stateDone
	case s.Terminating:
		it.wait(apis.ObjectTerminating, messageLeaving)
	case r.DeletePolicy == apis.DeleteOrphan:
		it.act(ActionOrphan, reasonPurge)
	case r.Phase == apis.PhaseCompleting:
		it.act(ActionPurge, reasonPurgeAgain)
	default:
		it.act(ActionPurge, reasonPurge)
	}
	if it.state == stateAct {
		take(r, s)
	}
	it.fail()
}

// purgeable tells whether the object is to be purged. What others depend on is not, whatever is asked for: it would take these along.
func purgeable(r *apis.InventoryRecord) bool {
	if r.PurgeOrder == nil || len(r.ManagedTypes) > 0 {
		return false
	}
	gk := KeyOf(*r).GroupKind()
	return gk != kindNamespace && !definesTypes(gk)
}

// purgeWave returns the index of the wave after which the object is purged: the last one that is not beyond its purge order. It is
// -1 for never.
func (m *maker) purgeWave(it *item) int {
	if !purgeable(it.record) {
		return -1
	}
	return max(it.wave, waveNumber(m.orders, *it.record.PurgeOrder))
}

// purge schedules what is due after a wave, and tells whether all of it is gone. The wave and those before it are ready.
func (w *wave) purge() (done bool) {
	done = true
	for _, it := range w.purged {
		if phase := it.record.Phase; phase != apis.PhaseCompleted && !purging(phase) {
			it.record.Phase = apis.PhaseScheduledForCompletion
			it.volatile = false
			it.purge()
		}
		done = done && it.state == stateDone
	}
	return done
}
