package reconcilers

import (
	"context"
	"errors"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusWords are the words for a way of writing the status, in logs and events.
type statusWords struct {
	verb, doing, done, note, failed string
}

var (
	updatesStatus = statusWords{"update", "updating", "StatusUpdated", "Updated status", "StatusUpdateFailed"}
	patchesStatus = statusWords{"patch", "patching", "StatusPatched", "Patched status", "StatusPatchFailed"}
)

// writeStatus writes the status and returns what becomes of the tree's result and error. The error is returned in any
// case (invariant L6).
func (r *ResourceReconciler[T]) writeStatus(
	ctx context.Context, config Config, original, resource T, result Result, err error,
) (Result, error) {
	words, mayConflict := updatesStatus, true
	isDuck := duck.IsDuck(resource, config.Scheme())
	if isDuck {
		words, mayConflict = patchesStatus, r.PatchStatusAlone
		if r.PatchStatusAlone {
			// Other changes by the tree must not be in the patch.
			resource = withStatusOf(original, resource)
		}
	}
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info(words.doing+" status", "diff", statusDiff(original, resource))
	}
	version := resource.GetResourceVersion()
	var writeErr error
	if isDuck {
		// A duck type does not cover all of the status: an update would lose the rest.
		writeErr = config.Status().Patch(ctx, resource, r.statusPatch(original, resource))
	} else {
		writeErr = config.Status().Update(ctx, resource)
	}
	switch {
	case resource.GetDeletionTimestamp() != nil && apierrs.IsNotFound(writeErr):
		// The tree cleared the last finalizer, so there is no status any more.
		return result, err
	case mayConflict && apierrs.IsConflict(writeErr):
		// The event of the other change brings the resource back.
		log.Info("unable to "+words.verb+" status", "error", writeErr.Error())
		if r.KeepResultAfterStatusUpdate {
			result = withRequeue(result, true)
		}
		return result, err
	case writeErr != nil:
		if !isQuiet(writeErr) {
			log.Error(writeErr, "unable to "+words.verb+" status")
			config.record(resource, corev1.EventTypeWarning, words.failed,
				"Failed to %s status: %v", words.verb, writeErr)
		}
		return result, joinLoud(err, writeErr)
	}
	if !r.SkipStatusEvents {
		config.record(resource, corev1.EventTypeNormal, words.done, "%s", words.note)
	}
	if version != "" && version == resource.GetResourceVersion() {
		// The server found nothing to change: no event follows.
		return result, err
	}
	contextOf(ctx).state.statusWritten(resource)
	if r.KeepResultAfterStatusUpdate || err != nil && !isOnlyHalt(err) {
		return result, err
	}
	// The event of the write brings the resource back. A halt is no error, so no other retry is needed.
	return Result{}, nil
}

// joinLoud joins the error of a tree and the error of a write. Each may be nil. A quiet error beside an error that is
// not quiet is dropped: a join is quiet if one of its members is, so it would hide the other error.
func joinLoud(err, writeErr error) error {
	switch {
	case writeErr == nil:
		return err
	case err == nil, isQuiet(err) && !isQuiet(writeErr):
		return writeErr
	case !isQuiet(err) && isQuiet(writeErr):
		return err
	default:
		return errors.Join(err, writeErr)
	}
}

// statusPatch returns a merge patch. It has an optimistic lock if the status is patched alone and the resource has a
// version, which objects in tests may not have.
func (r *ResourceReconciler[T]) statusPatch(original, resource T) client.Patch {
	version := resource.GetResourceVersion()
	if !r.PatchStatusAlone || version == "" {
		return client.MergeFrom(original)
	}
	base := copyOf(original)
	// Nodes may have written the resource since it was fetched.
	base.SetResourceVersion(version)
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// withStatusOf returns a copy of original, which is of a duck type, with the status of resource, and its version.
func withStatusOf[T client.Object](original, resource T) T {
	patched := copyOf(original)
	patched.SetResourceVersion(resource.GetResourceVersion())
	statusfield.Of(patched).CopyFrom(statusfield.Of(copyOf(resource)))
	return patched
}

func statusDiff(original, resource client.Object) string {
	// Printing changes the internal caches of some values, and original may share them with the informers.
	original = original.DeepCopyObject().(client.Object)
	before, after := statusfield.Of(original).Get(), statusfield.Of(resource).Get()
	return cmp.Diff(before, after, IgnoreAllUnexported, summariseInventories)
}

// summariseInventories compares large inventories by the number of objects in each phase. Their records would fill the
// log, and take seconds to compare.
var summariseInventories = cmp.FilterValues(func(a, b []apis.InventoryRecord) bool {
	return max(len(a), len(b)) > maxRecordsInDiff
}, cmp.Transformer("summary", func(records []apis.InventoryRecord) map[apis.InventoryPhase]int {
	phases := map[apis.InventoryPhase]int{}
	for i := range records {
		phases[records[i].Phase]++
	}
	return phases
}))

const maxRecordsInDiff = 20
