package reconcilers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds finalizer to resource, in the cluster and in memory. It does nothing if the finalizer is empty or
// already present.
//
// It sends a merge patch of the finalizers alone, with the config that the resource was loaded with. The API server
// refuses the patch if the resource has changed since it was read. An error that is not quiet is recorded as
// an event, and so is a success, unless the root has SkipFinalizerEvents. After an error the resource in memory is
// unchanged.
func AddFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	if finalizer == "" || controllerutil.ContainsFinalizer(resource, finalizer) {
		return nil
	}
	item := itemOf(ctx)
	if item != nil && slices.Contains(item.cleared, finalizer) {
		item.cleared = without(item.cleared, finalizer)
		resource.SetFinalizers(append(slices.Clone(resource.GetFinalizers()), finalizer))
		return nil
	}
	return changeFinalizers(ctx, resource, finalizerChange{name: finalizer, added: true})
}

// ClearFinalizer removes finalizer from resource, in the cluster and in memory. Other finalizers stay. It does nothing
// if the finalizer is empty or not present. It writes as [AddFinalizer] does.
func ClearFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	if finalizer == "" || !controllerutil.ContainsFinalizer(resource, finalizer) {
		return nil
	}
	if item := itemOf(ctx); item != nil {
		item.clear(resource, finalizer)
		return nil
	}
	return changeFinalizers(ctx, resource, finalizerChange{name: finalizer})
}

// finalizerChange adds or removes a finalizer.
type finalizerChange struct {
	name  string
	added bool
}

// of returns a copy of finalizers with the change. With an empty list rather than nil, the patch of an unstructured
// object has [] and not null, as in reconciler.io/runtime.
func (c finalizerChange) of(finalizers []string) []string {
	others := without(finalizers, c.name)
	if c.added {
		return append(others, c.name)
	}
	return others
}

// words are those in the log: what is done, and why.
func (c finalizerChange) words() (done, reason string) {
	if c.added {
		return "added finalizer", "clean-up is needed later"
	}
	return "removed finalizer", "clean-up is done"
}

// without returns a copy of names without some of them.
func without(names []string, removed ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(removed, name) })
}

// changeFinalizers changes the finalizers of resource, in the cluster and in memory.
func changeFinalizers(ctx context.Context, resource client.Object, change finalizerChange) error {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	base, err := patchBase(ctx, resource)
	if err != nil {
		return err
	}
	finalizers := change.of(resource.GetFinalizers())
	desired := base.DeepCopyObject().(client.Object)
	desired.SetFinalizers(finalizers)
	var hidden []string
	if item := itemOf(ctx); item != nil && len(item.cleared) > 0 {
		hidden = item.cleared
		base.SetFinalizers(slices.Concat(base.GetFinalizers(), hidden))
		desired.SetFinalizers(slices.Concat(finalizers, hidden))
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	write := written{verb: "patch", object: base, details: []any{"finalizer", change.name}}
	if err := config.Patch(ctx, desired, patch); err != nil {
		removes := len(finalizers) < len(base.GetFinalizers())
		if removes && base.GetDeletionTimestamp() != nil && apierrs.IsNotFound(err) {
			// The cache does not show yet that the last finalizer is gone, and the resource with it.
			resource.SetFinalizers(finalizers)
			return nil
		}
		recordFailure(ctx, describeObject(base), err)
		noteFailure(ctx, write, err)
		if !isQuiet(err) {
			config.record(base, corev1.EventTypeWarning, "FinalizerPatchFailed",
				"Failed to patch finalizer %q: %s", change.name, err)
		}
		return err
	}
	done, reason := change.words()
	noteWrite(ctx, done, write, reason)
	state := contextOf(ctx).state
	if state == nil || !state.skipFinalizerEvents {
		config.record(base, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", change.name)
	}
	state.finalizersPatched(desired)

	// Nothing else is copied, because earlier nodes may have changed the rest of resource in memory.
	resource.SetFinalizers(without(desired.GetFinalizers(), hidden...))
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	return nil
}

// patchBase returns a copy of the resource to compute a patch from. Below a cast it is a copy of the original resource.
func patchBase(ctx context.Context, resource client.Object) (client.Object, error) {
	if err := normalize(resource); err != nil {
		return nil, err
	}
	original, cast := resourceBehindCast(ctx, resource)
	if !cast {
		return resource.DeepCopyObject().(client.Object), nil
	}
	if err := normalize(original); err != nil {
		return nil, err
	}
	base := original.DeepCopyObject().(client.Object)
	// Until the cast ends, only the cast object has the answer to an earlier patch.
	base.SetFinalizers(resource.GetFinalizers())
	base.SetResourceVersion(resource.GetResourceVersion())
	return base, nil
}
