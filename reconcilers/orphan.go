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

// orphaned has the terminating resources that events have shown, and whether they are deleted without what depends on
// them. The finalizer that says so may be gone before a request begins, or before it has written the annotation.
type orphaned struct {
	// watched is true if each event of the resources is seen.
	watched bool

	mu     sync.Mutex
	byName map[types.NamespacedName]deletion
}

// deletion is what is known of the deletion of a resource.
type deletion struct {
	uid types.UID
	// orphans is true if what depends on the resource stays.
	orphans bool
}

// see notes a resource as an event shows it.
func (o *orphaned) see(resource client.Object) {
	if resource.GetDeletionTimestamp() == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = map[types.NamespacedName]deletion{}
	}
	name, d := client.ObjectKeyFromObject(resource), deletion{uid: resource.GetUID()}
	if known := o.byName[name]; known.uid == d.uid {
		d = known
	}
	d.orphans = d.orphans || ownership.WantsOrphans(resource)
	o.byName[name] = d
}

// of returns what is known of the deletion of a resource, and false if its event is still to come: the cache knows
// earlier than handlers do, and what an earlier version of the resource said is not in the cache. No request waits for
// that twice, for a predicate of the author may leave the event out.
func (o *orphaned) of(resource client.Object) (d deletion, known bool) {
	name := client.ObjectKeyFromObject(resource)
	o.mu.Lock()
	d, known = o.byName[name]
	o.mu.Unlock()
	if known = known && d.uid == resource.GetUID(); !known {
		o.see(resource)
		d = deletion{orphans: ownership.WantsOrphans(resource)}
	}
	return d, known || d.orphans || !o.watched
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
	d, known := r.orphaned.of(original)
	switch {
	case known && !d.orphans, !hasOneOf(original, Describe(r.Reconciler).allFinalizers()):
		return original, nil
	case !known:
		return original, fmt.Errorf("the event of the deletion of %s has not come yet: %w",
			describeObject(original), ErrQuiet)
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
	noteWrite(ctx, "annotated", change, "it is deleted without what depends on it")
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
		noteWrite(ctx, "released", change, "the resource is deleted without what depends on it")
	}
	return nil
}
