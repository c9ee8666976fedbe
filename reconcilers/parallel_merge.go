package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/threeway"
	"github.com/espalier-dev/espalier/stash"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordKeys are the lists in a status of which each node has an element.
var recordKeys = threeway.Keys{
	reflect.TypeFor[metav1.Condition]():         "Type",
	reflect.TypeFor[apis.FeatureStatus]():       "Name",
	reflect.TypeFor[apis.ForEachStatus]():       "Name",
	reflect.TypeFor[apis.ItemComponentStatus](): "Name",
}

// merge makes the outcome of all branches, in their order.
func (r *parallelRun[Type]) merge() (Result, error) {
	s, log := contextOf(r.ctx), conditionlog.Of(r.ctx)
	for i := range r.branches {
		r.branches[i].place.events.end(s.branch)
	}
	r.leave()
	var aggregate Result
	var errs []error
	for i := range r.branches {
		b := &r.branches[i]
		s.state.merge(b.state, r.reads)
		log.Merge(conditionlog.Of(b.ctx))
		aggregate = aggregateResult(aggregate, b.result)
		if b.err != nil {
			errs = append(errs, b.err)
		}
	}
	r.mergeFinalizers(s)
	for _, conflict := range append(r.mergeResource(), r.mergeStash()...) {
		errs = append(errs, Failed(r.ctx, nil, conflict))
	}
	return aggregate, joinAll(errs...)
}

// mergeFinalizers gives the resource the finalizers that the branches have left, and the version that it has since.
func (r *parallelRun[Type]) mergeFinalizers(s *treeContext) {
	views, cleared := make([][]string, len(r.branches)), make([][]string, len(r.branches))
	var patched finalizersPatch
	for i := range r.branches {
		b := &r.branches[i]
		views[i] = b.resource.GetFinalizers()
		if b.item != nil {
			cleared[i] = b.item.cleared
		}
		if b.place.patched.number > patched.number {
			patched = b.place.patched
		}
	}
	if s.item != nil {
		s.item.cleared = mergedNames(s.item.cleared, cleared...)
	}
	switch {
	case patched.answer == nil:
	case s.branch != nil:
		s.branch.patched = patched
	default:
		s.state.finalizersPatched(patched.answer)
	}
	// On the copies there is nothing left to merge.
	names := mergedNames(r.resource.GetFinalizers(), views...)
	show := func(obj client.Object) {
		patched.show(obj)
		if !slices.Equal(obj.GetFinalizers(), names) {
			obj.SetFinalizers(names)
		}
	}
	show(r.resource)
	for i := range r.branches {
		show(r.branches[i].resource)
	}
}

// mergeResource changes the resource as the branches have changed their copies.
func (r *parallelRun[Type]) mergeResource() []error {
	copies := make([]any, len(r.branches))
	var errs []error
	for i := range r.branches {
		if err := normalize(r.branches[i].resource); err != nil {
			// Content that holds itself has no end, so it cannot be compared.
			errs = append(errs, fmt.Errorf("what the node %s has changed is left out: %w", r.branches[i].name(), err))
			r.branches[i].resource = copyOf(r.resource)
		}
		copies[i] = r.branches[i].resource
	}
	errs = append(errs, r.mergeSummaries()...)
	for _, c := range threeway.Merge(r.resource, recordKeys, copies...) {
		errs = append(errs, r.errBothChange(c.First, c.Second, c.Field+" of the resource"))
	}
	return errs
}

func (r *parallelRun[Type]) mergeStash() []error {
	if !r.hasStash {
		return nil
	}
	copies := make([]context.Context, len(r.branches))
	for i := range r.branches {
		copies[i] = r.branches[i].ctx
	}
	var errs []error
	for _, c := range stash.Merge(r.ctx, copies...) {
		errs = append(errs, r.errBothChange(c.First, c.Second, fmt.Sprintf("the value %q in the stash", c.Key)))
	}
	return errs
}

func (r *parallelRun[Type]) errBothChange(first, second int, what string) error {
	return fmt.Errorf("the nodes %s and %s both change %s: nodes that do so must not be in one Parallel",
		r.branches[first].name(), r.branches[second].name(), what)
}

// name is the path of the node of a branch.
func (b *parallelBranch[Type]) name() string {
	if name := Describe(b.node).Name; name != "" {
		return RetrievePath(Enter(b.ctx, name))
	}
	return RetrievePath(b.ctx)
}
