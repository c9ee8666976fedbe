package observe

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endingOf returns how a Job ended whose last metadata are those of object. The metadata are enough, so that it is
// known of a Job that is gone within milliseconds: the managed fields of the status name completionTime, which only a
// Job has that completed with success, and the conditions, which a Job has once it failed. The controller that deletes
// finished Jobs lets their Pods go first, so the object has a deletionTimestamp in between. The usual deletion by
// somebody else has none.
func endingOf(object metav1.Object) plan.Ending {
	entries := object.GetManagedFields()
	if len(entries) == 0 {
		return plan.EndingUnknown
	}
	completed, conditions := false, false
	for i := range entries {
		if entries[i].Subresource != "status" || entries[i].FieldsV1 == nil {
			continue
		}
		fields := entries[i].FieldsV1.GetRawString()
		completed = completed || strings.Contains(fields, `"f:completionTime"`)
		conditions = conditions || strings.Contains(fields, `"f:conditions"`)
	}
	switch {
	case completed:
		return plan.EndingCompleted
	case conditions && object.GetDeletionTimestamp() != nil:
		return plan.EndingFailed
	}
	return plan.EndingInterrupted
}

// keepLast keeps the last version of an object that was deleted, for those who want to know how it ended.
func (t *watchedType) keepLast(name types.NamespacedName, last *snapshot) {
	at := t.slots[name]
	if at == nil {
		return
	}
	for _, e := range at.entries {
		if e.wantsEnding {
			e.last = last
		}
	}
}

// awaitsEnding reports whether a request found that the object is gone, and the watch shows an older version of it. It
// is about to show the deletion, and with it how the object ended.
func (e *entry) awaitsEnding(shown *snapshot) bool {
	r := e.response
	return e.wantsEnding && shown != nil && r != nil && r.snapshot == nil && r.gone == shown.uid && e.typ.phase == live
}

// withoutObject returns what is known of an object of which no version is believed in.
func (e *entry) withoutObject(presence plan.Presence, c *Component) plan.Observed {
	o := plan.Observed{Presence: presence, TypeMissing: e.typ.phase == missing}
	switch {
	case presence != plan.Absent || !e.wantsEnding:
	case e.awaitsEnding(e.slot.shown) && e.typ.stream != nil:
		o.Presence = plan.PresenceUnknown
	case e.last != nil:
		if last := e.last.observed(c); last.Ownership == plan.Ours {
			o.Ending, o.Digest = e.last.ending, last.Digest
		}
	}
	return o
}
