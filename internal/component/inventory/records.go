package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"

	validate "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessage is how long the message of a stored record may be, in bytes.
const MaxMessage = 256

// Compact returns a record as it is stored: fields with their default are empty, times have the precision that they
// have once read back, and a long message is cut. A compact record stays as it is.
func Compact(r apis.InventoryRecord) apis.InventoryRecord {
	if r.AdoptionPolicy == apis.AdoptNever {
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
	if r.Phase == apis.PhaseReady && r.Status == apis.ObjectCurrent {
		r.Status = ""
	}
	if len(r.ManagedTypes) == 0 {
		r.ManagedTypes = nil
	}
	if r.Message != "" {
		r.Message = message.Truncate(r.Message, MaxMessage)
	}
	r.LastAppliedAt = seconds(r.LastAppliedAt)
	return r
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

// Keys returns the keys of records.
func Keys(records []apis.InventoryRecord) map[plan.Key]struct{} {
	keys := make(map[plan.Key]struct{}, len(records))
	for i := range records {
		keys[plan.KeyOf(records[i])] = struct{}{}
	}
	return keys
}

// Purged reports whether a record says that its object is purged, or is to be purged. Without a purge order, an object
// that is completed has gone by itself.
func Purged(record *apis.InventoryRecord) bool {
	if record.PurgeOrder == nil {
		return false
	}
	switch record.Phase {
	case apis.PhaseScheduledForCompletion, apis.PhaseCompleting, apis.PhaseCompleted:
		return true
	}
	return false
}

// Decisions are what a record says that has to be durable before it is carried out. Without the record, an object that
// was purged would be created again, and an object that was adopted would be deleted with the component.
type Decisions struct {
	// Purged is the result of [Purged].
	Purged, Adopted bool
}

// DecisionsOf returns the decisions of a record.
func DecisionsOf(record *apis.InventoryRecord) Decisions {
	return Decisions{Purged: Purged(record), Adopted: record.Adopted}
}

// Have reports whether the decisions of a record are among these. That an object is not purged is no decision.
func (d Decisions) Have(record *apis.InventoryRecord) bool {
	next := DecisionsOf(record)
	return next.Adopted == d.Adopted && (d.Purged || !next.Purged)
}

// Equal reports whether two inventories are the same once compact. The order does not matter; if it is the same, Equal
// allocates nothing.
func Equal(a, b []apis.InventoryRecord) bool {
	switch {
	case len(a) != len(b):
		return false
	case len(a) == 0, &a[0] == &b[0], equalInOrder(a, b):
		return true
	}
	a, b = compactAll(a), compactAll(b)
	for _, records := range [][]apis.InventoryRecord{a, b} {
		slices.SortStableFunc(records, func(x, y apis.InventoryRecord) int { return ByKey(&x, &y) })
	}
	return equalInOrder(a, b)
}

func equalInOrder(a, b []apis.InventoryRecord) bool {
	return slices.EqualFunc(a, b, func(x, y apis.InventoryRecord) bool {
		x, y = Compact(x), Compact(y)
		return same(&x, &y)
	})
}

// same reports whether two compact records are equal.
func same(a, b *apis.InventoryRecord) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace &&
		a.Kind == b.Kind && a.Group == b.Group && a.Version == b.Version && a.UID == b.UID &&
		a.AdoptionPolicy == b.AdoptionPolicy && a.ReconcilePolicy == b.ReconcilePolicy &&
		a.UpdatePolicy == b.UpdatePolicy && a.DeletePolicy == b.DeletePolicy && a.PrunePolicy == b.PrunePolicy &&
		a.Adopted == b.Adopted && a.ApplyOrder == b.ApplyOrder &&
		samePointer(a.PurgeOrder, b.PurgeOrder) && a.DeleteOrder == b.DeleteOrder &&
		slices.Equal(a.ManagedTypes, b.ManagedTypes) && a.IgnoreForeignInstances == b.IgnoreForeignInstances &&
		a.Digest == b.Digest && a.Fields == b.Fields && a.Generation == b.Generation &&
		a.Phase == b.Phase && a.Status == b.Status && a.Message == b.Message &&
		a.LastAppliedAt.Equal(b.LastAppliedAt)
}

// mayLag reports whether the first of two compact records may stay stored in place of the second. Nothing is lost then:
// after a restart, an object that has the desired digest is not written again.
func mayLag(stored, now *apis.InventoryRecord) bool {
	if stored.Phase != apis.PhaseReady || now.Phase != apis.PhaseReady {
		return same(stored, now)
	}
	lagging := *stored
	lagging.Digest, lagging.Generation = now.Digest, now.Generation
	return same(&lagging, now)
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// ByKey orders records by group, kind, namespace and name.
func ByKey(a, b *apis.InventoryRecord) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// Validate refuses an inventory that may be damaged: a record without the name of an object, or with one that no object
// can have, two records of the same object, or an unknown word, such as a policy of a later release. It returns the
// first error in the order of records.
func Validate(records []apis.InventoryRecord) error {
	seen := make(map[plan.Key]int, len(records))
	for i := range records {
		record := &records[i]
		key := plan.KeyOf(*record)
		if err := check(record); err != nil {
			return fmt.Errorf("record %d of the inventory (%s): %w", i, key, err)
		}
		if first, ok := seen[key]; ok {
			return fmt.Errorf("record %d of the inventory (%s) is about the same object as record %d", i, key, first)
		}
		seen[key] = i
	}
	return nil
}

// check refuses a record that is damaged.
func check(r *apis.InventoryRecord) error {
	if r.Kind == "" {
		return errors.New("it has no kind")
	}
	if r.Name == "" {
		return errors.New("it has no name")
	}
	for _, part := range []string{r.Group, r.Version, r.Kind, r.Namespace, r.Name} {
		if !utf8.ValidString(part) {
			return fmt.Errorf("%q is no text", part)
		}
		// A client makes no request for such a name, and its error would be taken for one of the connection.
		if reasons := validate.IsPathSegmentName(part); len(reasons) > 0 {
			return fmt.Errorf("%q %s", part, strings.Join(reasons, ", "))
		}
	}
	return errors.Join(
		checkWord("adoption policy", r.AdoptionPolicy, apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways),
		checkWord("reconcile policy", r.ReconcilePolicy,
			apis.ReconcileOnObjectChange, apis.ReconcileOnObjectOrComponentChange, apis.ReconcileOnce),
		checkWord("update policy", r.UpdatePolicy,
			apis.UpdateApply, apis.UpdateApplyOverride, apis.UpdateReplace, apis.UpdateRecreate),
		checkWord("delete policy", r.DeletePolicy,
			apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete),
		checkWord("prune policy", r.PrunePolicy, apis.PruneBefore, apis.PruneWith, apis.PruneAfter),
		checkWord("phase", r.Phase,
			apis.PhaseScheduledForApplication, apis.PhaseScheduledForDeletion, apis.PhaseScheduledForCompletion,
			apis.PhaseCreating, apis.PhaseUpdating, apis.PhaseRecreating, apis.PhaseDeleting, apis.PhaseCompleting,
			apis.PhaseReady, apis.PhaseCompleted),
		checkWord("status", r.Status,
			apis.ObjectInProgress, apis.ObjectFailed, apis.ObjectCurrent, apis.ObjectTerminating, apis.ObjectNotFound,
			apis.ObjectUnknown),
	)
}

// checkWord refuses a word that is neither empty nor known.
func checkWord[T ~string](what string, word T, known ...T) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	return fmt.Errorf("its %s is %q, which is not known", what, word)
}
