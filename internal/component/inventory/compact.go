package inventory

import (
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessage is how long the message of a stored record may be, in bytes.
const MaxMessage = 256

// ellipsis ends a message that was cut.
const ellipsis = "…"

// Compact returns a record as it is stored: whatever is as by default is empty, times are as exact as they are once read
// back, and a long message is cut. What is compact stays as it is.
func Compact(r apis.InventoryRecord) apis.InventoryRecord {
	if r.AdoptionPolicy == apis.AdoptIfUnowned {
		r.AdoptionPolicy = ""
	}
	if r.ReconcilePolicy == apis.ReconcileOnObjectChange {
		r.ReconcilePolicy = ""
	}
	if r.UpdatePolicy == apis.UpdateApply {
		r.UpdatePolicy = ""
	}
	if r.DeletePolicy == apis.DeleteDelete {
		r.DeletePolicy = ""
	}
	if r.PrunePolicy == apis.PruneWith {
		r.PrunePolicy = ""
	}
	if r.Phase == apis.PhaseReady && r.Status == apis.ObjectCurrent {
		r.Status = ""
	}
	if len(r.ManagedTypes) == 0 {
		r.ManagedTypes = nil
	}
	r.Message = cut(r.Message)
	r.LastAppliedAt = seconds(r.LastAppliedAt)
	return r
}

// cut shortens a message to MaxMessage bytes.
func cut(message string) string {
	// What is no text would come back from the API server as another one.
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= MaxMessage {
		return message
	}
	end := MaxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}

// seconds drops the part of a time that is not stored.
func seconds(t *metav1.Time) *metav1.Time {
	switch {
	case t.IsZero():
		return nil
	case t.Nanosecond() == 0:
		return t
	}
	return &metav1.Time{Time: t.Rfc3339Copy().Time}
}

func compactAll(records []apis.InventoryRecord) []apis.InventoryRecord {
	compacted := make([]apis.InventoryRecord, len(records))
	for i := range records {
		compacted[i] = Compact(records[i])
	}
	return compacted
}

// Keys are those of records.
func Keys(records []apis.InventoryRecord) map[plan.Key]struct{} {
	keys := make(map[plan.Key]struct{}, len(records))
	for i := range records {
		keys[plan.KeyOf(records[i])] = struct{}{}
	}
	return keys
}
