package reconcilers

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// branchFinalizers are the finalizers of the resource while branches run: as the API server has them, but for those that
// an item does not need any more. Branches change them one after the other.
type branchFinalizers struct {
	// turn has room for the branch that changes them. It is no lock, because the branch waits for the API server.
	turn  chan struct{}
	names []orderedFinalizer
	// answer is the resource as the last patch has left it; nil if there was none.
	answer client.Object
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

// change changes the finalizers of the resource for a branch, which has resource. They end up in the order of the
// branches. In memory the branch sees only what it has changed itself.
func (f *branchFinalizers) change(
	ctx context.Context, order []int, resource client.Object, change finalizerChange,
) error {
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
	own, next := resource.GetFinalizers(), f.with(order, change)
	resource.SetFinalizers(without(namesOf(f.names), cleared...))
	if f.answer != nil {
		resource.SetResourceVersion(f.answer.GetResourceVersion())
		resource.SetGeneration(f.answer.GetGeneration())
	}
	answer, err := patchFinalizers(ctx, resource, without(namesOf(next), cleared...), change)
	if err != nil {
		resource.SetFinalizers(own)
		return err
	}
	f.names = next
	if answer != nil {
		f.answer = answer
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
