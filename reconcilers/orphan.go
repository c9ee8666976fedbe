package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/ownership"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// orphaned has the resources that were seen to be deleted without what depends on them. The finalizer that says so may
// be gone before a request begins, or before it has written the annotation.
type orphaned struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]types.UID
}

// see notes a resource as an event or the cache shows it.
func (o *orphaned) see(resource client.Object) {
	if !ownership.WantsOrphans(resource) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = map[types.NamespacedName]types.UID{}
	}
	o.byName[client.ObjectKeyFromObject(resource)] = resource.GetUID()
}

// has reports whether a resource was seen to be deleted that way.
func (o *orphaned) has(resource client.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid, ok := o.byName[client.ObjectKeyFromObject(resource)]
	return ok && uid == resource.GetUID()
}

// forget drops a resource that is gone.
func (o *orphaned) forget(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byName, name)
}

// noteOrphan writes on a terminating resource that what depends on it stays, if that is so and not written yet. The
// garbage collector takes its finalizer off while those of the tree still hold the resource. It returns the resource
// as it is then. Nothing is written without a finalizer of the tree: nothing of it then holds the resource until the
// garbage collector has removed the owner references, and it need not be allowed to patch the resource.
func (r *ResourceReconciler[T]) noteOrphan(
	ctx context.Context, config Config, p *requestState, original T,
) (T, error) {
	if original.GetDeletionTimestamp() == nil || ownership.IsOrphanNoted(original) {
		return original, nil
	}
	r.orphaned.see(original)
	if !r.orphaned.has(original) || !hasOneOf(original, Describe(r.Reconciler).allFinalizers()) {
		return original, nil
	}
	noted := copyOf(original)
	noted.SetAnnotations(MergeMaps(noted.GetAnnotations(),
		map[string]string{ownership.AnnotationOrphan: string(noted.GetUID())}))
	patch := client.MergeFromWithOptions(copyOf(original), client.MergeFromWithOptimisticLock{})
	change := written{verb: "patch", object: original, details: []any{"annotation", ownership.AnnotationOrphan}}
	if err := config.Patch(ctx, noted, patch); err != nil {
		noteFailure(ctx, change, err)
		return original, fmt.Errorf("unable to note on %s that what depends on it stays: %w",
			describeObject(original), err)
	}
	noteWrite(ctx, "annotated", change, because("it is deleted without what depends on it"))
	p.written = true
	return noted, nil
}

// letGo removes the labels of Espalier from children that have no owner reference, so that they are nobody's children.
func (k *children[T, CT, CLT]) letGo(ctx context.Context, config Config, found []CT) error {
	for _, child := range found {
		released := copyOf(child)
		labels := MergeMaps(released.GetLabels())
		for key := range labels {
			if strings.HasPrefix(key, "espalier.dev/") {
				delete(labels, key)
			}
		}
		if len(labels) == len(child.GetLabels()) {
			continue
		}
		released.SetLabels(labels)
		patch := client.MergeFromWithOptions(copyOf(child), client.MergeFromWithOptimisticLock{})
		change := written{verb: "patch", object: child}
		if err := client.IgnoreNotFound(config.Patch(ctx, released, patch)); err != nil {
			noteFailure(ctx, change, err)
			return k.errorf("is unable to release %s: %w", describeObject(child), err)
		}
		k.recordWrite(ctx, config, child, released)
		noteWrite(ctx, "released", change, because("the resource is deleted without what depends on it"))
	}
	return nil
}
