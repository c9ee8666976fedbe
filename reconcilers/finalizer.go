package reconcilers

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer puts finalizer on resource, in the cluster and in memory. It does nothing if the finalizer is empty or
// there already.
//
// It is a merge patch of the finalizers alone, made with the config that the resource was loaded with, and refused by
// the API server if the resource has changed since it was read. The outcome is recorded as an event, unless the error
// is quiet. After an error the resource in memory is as before.
func AddFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	if finalizer == "" || controllerutil.ContainsFinalizer(resource, finalizer) {
		return nil
	}
	finalizers := append(slices.Clone(resource.GetFinalizers()), finalizer)
	return patchFinalizers(ctx, resource, finalizer, "adding finalizer", finalizers)
}

// ClearFinalizer takes finalizer off resource, in the cluster and in memory, and leaves those of others. It does
// nothing if the finalizer is empty or not there. It works as [AddFinalizer] does.
func ClearFinalizer(ctx context.Context, resource client.Object, finalizer string) error {
	if finalizer == "" || !controllerutil.ContainsFinalizer(resource, finalizer) {
		return nil
	}
	others := slices.Clone(resource.GetFinalizers())
	// An empty list, rather than none, has an unstructured object send [] and not null, as it does upstream.
	others = slices.DeleteFunc(others, func(name string) bool { return name == finalizer })
	return patchFinalizers(ctx, resource, finalizer, "removing finalizer", others)
}

func patchFinalizers(ctx context.Context, resource client.Object, finalizer, doing string, finalizers []string) error {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	base, err := patchable(ctx, resource)
	if err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("finalizer", finalizer)
	log.Info(doing)

	desired := base.DeepCopyObject().(client.Object)
	desired.SetFinalizers(finalizers)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		recordFailure(ctx, describeObject(base), err)
		if !isQuiet(err) {
			log.Error(err, "unable to patch finalizers")
			config.record(base, corev1.EventTypeWarning, "FinalizerPatchFailed",
				"Failed to patch finalizer %q: %s", finalizer, err)
		}
		return err
	}
	config.record(base, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", finalizer)

	contextOf(ctx).state.finalizersPatched(desired)

	// Only what the patch was about is taken over: the rest of resource may have been changed in memory by the nodes
	// before.
	resource.SetFinalizers(desired.GetFinalizers())
	resource.SetResourceVersion(desired.GetResourceVersion())
	resource.SetGeneration(desired.GetGeneration())
	return nil
}

// patchable returns a copy of the resource to make a patch of: of its own kind, whatever the nodes see it as.
func patchable(ctx context.Context, resource client.Object) (client.Object, error) {
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
	// An earlier patch is known to the cast object only, until the cast ends.
	base.SetFinalizers(resource.GetFinalizers())
	base.SetResourceVersion(resource.GetResourceVersion())
	return base, nil
}
