package reconcilers

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/statusfield"
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
	r.leave()
	var aggregate Result
	var errs []error
	s, log := contextOf(r.ctx), conditionlog.Of(r.ctx)
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
	types, summaries := r.takeSummaries()
	copies := make([]any, len(r.branches))
	for i := range r.branches {
		copies[i] = r.branches[i].resource
	}
	var errs []error
	for _, c := range threeway.Merge(r.resource, recordKeys, copies...) {
		errs = append(errs, r.errBothChange(c.First, c.Second, c.Field+" of the resource"))
	}
	if len(types) > 0 {
		replaceConditions(r.resource, types, summaries)
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

// conditionsBeside are conditions that are none of a resource.
type conditionsBeside struct{ all []metav1.Condition }

var _ apis.ConditionsAccessor = (*conditionsBeside)(nil)

// GetConditions implements [apis.ConditionsAccessor].
func (c *conditionsBeside) GetConditions() []metav1.Condition { return c.all }

// SetConditions implements [apis.ConditionsAccessor].
func (c *conditionsBeside) SetConditions(conditions []metav1.Condition) { c.all = conditions }

// takeSummaries returns the conditions that sum up those that the branches have marked, as if these had been marked one
// after the other, and their types. On the copies these conditions are as they were before.
func (r *parallelRun[Type]) takeSummaries() (types []string, summaries []metav1.Condition) {
	before := statusfield.Of(r.resource).GetConditions()
	marked := conditionsBeside{before}
	for i := range r.branches {
		b := &r.branches[i]
		isOfResource := func(status any) bool {
			accessor, ok := status.(apis.ConditionsAccessor)
			return ok && isOneSlice(accessor.GetConditions(), statusfield.Of(b.resource).GetConditions())
		}
		types = append(types, conditionlog.Of(b.ctx).MarkAgain(isOfResource, &marked)...)
	}
	if len(types) == 0 {
		return nil, nil
	}
	for i := range r.branches {
		replaceConditions(r.branches[i].resource, types, before)
	}
	return types, marked.all
}

// isOneSlice reports whether two slices are the same one, and not just equal.
func isOneSlice(a, b []metav1.Condition) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

// replaceConditions gives resource the conditions of some types that are among others, and takes away its own.
func replaceConditions(resource client.Object, types []string, others []metav1.Condition) {
	takeConditions(resource, types)
	var taken []metav1.Condition
	for _, condition := range others {
		if slices.Contains(types, condition.Type) {
			taken = append(taken, condition)
		}
	}
	putConditions(resource, taken)
}
