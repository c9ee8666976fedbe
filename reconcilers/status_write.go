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

// writeStatus writes the status and returns what becomes of the tree's result and error. The error is returned in any
// case (invariant L6). A normalizeErr stands for a status that cannot be written at all.
func (r *ResourceReconciler[T]) writeStatus(
	ctx context.Context, config Config, original, resource T, result Result, err, normalizeErr error,
) (Result, error) {
	if normalizeErr != nil {
		return r.afterWrite(result, err, normalizeErr)
	}
	version := resource.GetResourceVersion()
	write := r.updateStatus
	if duck.IsDuck(resource, config.Scheme()) {
		write = r.patchStatus
		if r.PatchStatusAlone {
			// What the tree changed beside the status stays out of the patch.
			resource = withStatusOf(original, resource)
		}
	}
	writeErr := write(ctx, config, original, resource)
	if writeErr == nil && version != "" && version == resource.GetResourceVersion() {
		writeErr = errStatusUnchanged
	}
	if writeErr == nil {
		contextOf(ctx).state.statusWritten(resource)
	}
	return r.afterWrite(result, err, writeErr)
}

var (
	// errStatusConflict stands for a status write that came too late: whoever changed the resource meanwhile wakes it.
	errStatusConflict = errors.New("status conflict")
	// errStatusUnchanged stands for a status write that the server found to change nothing: no event follows.
	errStatusUnchanged = errors.New("status unchanged")
)

// afterWrite decides what is returned after a status was written, or could not be.
func (r *ResourceReconciler[T]) afterWrite(result Result, err, writeErr error) (Result, error) {
	switch {
	case errors.Is(writeErr, errStatusUnchanged):
		return result, err
	case errors.Is(writeErr, errStatusConflict):
		if r.KeepResultAfterStatusUpdate {
			result = withRequeue(result, true)
		}
		return result, err
	case writeErr != nil:
		return result, joinLoud(err, writeErr)
	case r.KeepResultAfterStatusUpdate || err != nil && !isOnlyHalt(err):
		return result, err
	default:
		// The event of the write brings the resource back. A halt is no error, so nothing else is owed.
		return Result{}, nil
	}
}

// joinLoud joins the error of a tree and that of a write, each of which may be nil. It drops a quiet one beside one
// that is not: a join is quiet as soon as one of its members is, and would silence the other.
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

func (r *ResourceReconciler[T]) updateStatus(ctx context.Context, config Config, original, resource T) error {
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info("updating status", "diff", statusDiff(original, resource))
	}
	err := config.Status().Update(ctx, resource)
	if wentMeanwhile(resource, err) {
		return errStatusUnchanged
	}
	if apierrs.IsConflict(err) {
		log.Info("unable to update status", "error", err.Error())
		return errStatusConflict
	}
	return r.reportStatus(ctx, config, resource, err, statusWrite{verb: "update", done: "StatusUpdated", note: "Updated status", failed: "StatusUpdateFailed"})
}

// patchStatus writes the status of a duck type, which does not cover all of the status: an update would lose the rest.
func (r *ResourceReconciler[T]) patchStatus(ctx context.Context, config Config, original, resource T) error {
	log := logr.FromContextOrDiscard(ctx)
	if log.Enabled() {
		log.Info("patching status", "diff", statusDiff(original, resource))
	}
	err := config.Status().Patch(ctx, resource, r.statusPatch(original, resource))
	if wentMeanwhile(resource, err) {
		return errStatusUnchanged
	}
	if r.PatchStatusAlone && apierrs.IsConflict(err) {
		log.Info("unable to patch status", "error", err.Error())
		return errStatusConflict
	}
	return r.reportStatus(ctx, config, resource, err, statusWrite{verb: "patch", done: "StatusPatched", note: "Patched status", failed: "StatusPatchFailed"})
}

// wentMeanwhile tells whether there is no status any more to be written, which is no failure: the tree cleared the last
// finalizer.
func wentMeanwhile(resource client.Object, err error) bool {
	return resource.GetDeletionTimestamp() != nil && apierrs.IsNotFound(err)
}

// statusPatch is a merge patch. A lock takes a version, which objects made up for tests may not have.
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

// statusWrite is how a way of writing the status is spoken of in logs and events.
type statusWrite struct {
	verb, done, note, failed string
}

// reportStatus records the outcome of a status write and returns err.
func (r *ResourceReconciler[T]) reportStatus(ctx context.Context, config Config, resource T, err error, write statusWrite) error {
	if err == nil {
		if !r.SkipStatusEvents {
			config.record(resource, corev1.EventTypeNormal, write.done, "%s", write.note)
		}
		return nil
	}
	if !isQuiet(err) {
		logr.FromContextOrDiscard(ctx).Error(err, "unable to "+write.verb+" status")
		config.record(resource, corev1.EventTypeWarning, write.failed, "Failed to %s status: %v", write.verb, err)
	}
	return err
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
