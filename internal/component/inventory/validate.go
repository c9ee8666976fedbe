package inventory

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// Validate refuses an inventory that cannot be acted upon without a doubt: a record that names no object, two of the same
// object, or a word that means nothing, such as a policy that a later release knows. It returns the first error in the order of
// records.
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

// check refuses a record for what is in it.
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
