package reconcilers

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// branchFinalizers are the finalizers of the resource while branches run: as the API server has them, but for those
// that an item does not need any more. Branches change them one after the other.
type branchFinalizers struct {
	// turn has room for the branch that changes them. It is no lock, because the branch waits for the API server.
	turn  chan struct{}
	names []orderedFinalizer
	// last is the last patch.
	last finalizersPatch
}

// finalizersPatch is what a patch of finalizers has left. It is zero if there was none.
type finalizersPatch struct {
	answer client.Object
	number int
}

// show gives an object the version that the patch has left.
func (p finalizersPatch) show(obj client.Object) {
	if p.answer != nil {
		obj.SetResourceVersion(p.answer.GetResourceVersion())
		obj.SetGeneration(p.answer.GetGeneration())
	}
}

// orderedFinalizer is a finalizer with the branch that has added it; nil if none did.
type orderedFinalizer struct {
	name  string
	order []int
}

func newBranchFinalizers(resource client.Object) *branchFinalizers {
	f := &branchFinalizers{turn: make(chan struct{}, 1)}
	for _, name := range resource.GetFinalizers() {
		f.names = append(f.names, orderedFinalizer{name: name})
	}
	return f
}

// changeFinalizers changes the finalizers of the resource for the branch, which has resource. They end up in the order
// of the branches. In memory the branch sees only what it has changed itself.
func (b *branchPlace) changeFinalizers(ctx context.Context, resource client.Object, change finalizerChange) error {
	f := b.finalizers
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-f.turn }()
	var cleared []string
	if item := itemOf(ctx); item != nil {
		cleared = item.cleared
	}
	own, next := resource.GetFinalizers(), f.with(b.order, change)
	if slices.Contains(namesOf(f.names), change.name) == change.added {
		// Another branch has made the same change. After the last finalizer, there is no resource to patch.
		resource.SetFinalizers(change.of(own))
		return nil
	}
	resource.SetFinalizers(without(namesOf(f.names), cleared...))
	f.last.show(resource)
	answer, err := patchFinalizers(ctx, resource, without(namesOf(next), cleared...), change)
	if err != nil {
		resource.SetFinalizers(own)
		return err
	}
	f.names = next
	if answer != nil {
		f.last = finalizersPatch{answer, f.last.number + 1}
		b.patched = f.last
	}
	resource.SetFinalizers(change.of(own))
	return nil
}

// with returns the finalizers with a change by a branch.
func (f *branchFinalizers) with(order []int, change finalizerChange) []orderedFinalizer {
	names := slices.DeleteFunc(slices.Clone(f.names), func(o orderedFinalizer) bool { return o.name == change.name })
	if change.added {
		names = append(names, orderedFinalizer{change.name, order})
		slices.SortStableFunc(names, func(a, b orderedFinalizer) int { return slices.Compare(a.order, b.order) })
	}
	return names
}

func namesOf(finalizers []orderedFinalizer) []string {
	names := make([]string, len(finalizers))
	for i, f := range finalizers {
		names[i] = f.name
	}
	return names
}

// mergedNames returns base with what others have removed and added, in their order.
func mergedNames(base []string, others ...[]string) []string {
	merged := slices.Clone(base)
	for _, other := range others {
		merged = without(merged, without(base, other...)...)
		for _, name := range without(other, base...) {
			if !slices.Contains(merged, name) {
				merged = append(merged, name)
			}
		}
	}
	return merged
}
