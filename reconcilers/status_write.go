package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusWords are the words for a way of writing the status, in logs and events.
type statusWords struct {
	verb, doing, logged, done, note, failed string
}

var (
	updatesStatus = statusWords{
		"update", "updating", "updated status", "StatusUpdated", "Updated status", "StatusUpdateFailed"}
	patchesStatus = statusWords{
		"patch", "patching", "patched status", "StatusPatched", "Patched status", "StatusPatchFailed"}
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
	write := written{verb: words.verb, subresource: "status", object: resource}
	log := logr.FromContextOrDiscard(ctx)
	if log := log.V(detailed); log.Enabled() {
		log.Info(words.doing+" status", "diff", statusDiff(original, resource))
	}
	// The write replaces resource by the answer.
	version := resource.GetResourceVersion()
	writeErr := r.sendStatus(ctx, config, isDuck, original, resource)
	if writeErr != nil {
		noteFailure(ctx, write, writeErr)
	}
	switch {
	case resource.GetDeletionTimestamp() != nil && apierrs.IsNotFound(writeErr):
		// Another client removed the last finalizer meanwhile, so there is no status any more.
		return result, err
	case mayConflict && apierrs.IsConflict(writeErr):
		// The event of the other change brings the resource back.
		log.V(1).Info("unable to "+words.verb+" status", "error", writeErr.Error())
		if r.KeepResultAfterStatusUpdate {
			result = withRequeue(result, true)
		}
		return result, err
	case writeErr != nil:
		if !isQuiet(writeErr) {
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
	noteWrite(ctx, words.logged, write, "")
	contextOf(ctx).state.statusWritten(resource)
	if r.KeepResultAfterStatusUpdate || err != nil && !isOnlyHalt(err) {
		return result, err
	}
	// The event of the write brings the resource back. A halt is no error, so no other retry is needed.
	return Result{}, nil
}

// sendStatus writes the status. A duck type does not cover all of it, and an update would lose the rest.
func (r *ResourceReconciler[T]) sendStatus(
	ctx context.Context, config Config, isDuck bool, original, resource T,
) error {
	if isDuck {
		return config.Status().Patch(ctx, resource, r.statusPatch(original, resource))
	}
	return config.Status().Update(ctx, resource)
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
	return diff.Diff(loggableStatus(original), loggableStatus(resource))
}

// maxRecordsInLog is how many records of an inventory are logged. More of them would fill the log, and take seconds to
// compare.
const maxRecordsInLog = 20

// loggableStatus returns the JSON content of the status of obj. Of a larger inventory, it has how many objects are in
// which phase.
func loggableStatus(obj client.Object) any {
	status := statusfield.Of(obj).Get()
	encoded, err := json.Marshal(status)
	if err != nil {
		return status
	}
	var content any
	_ = json.Unmarshal(encoded, &content) // what was encoded can be decoded
	fields, _ := content.(map[string]any)
	records, _ := fields["inventory"].([]any)
	if len(records) > maxRecordsInLog {
		phases := map[any]int{}
		for _, record := range records {
			record, _ := record.(map[string]any)
			phases[record["phase"]]++
		}
		fields["inventory"] = fmt.Sprint(phases)
	}
	return content
}
