package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// release takes the fences off the types that are desired. They were left by a removal that was broken off; to write the definition anew
// would do it as well, but not every one is written again.
func (r *run) release(ctx context.Context) error {
	if r.task.Deleting || r.task.DryRun {
		return nil
	}
	var failed []error
	for i := range r.in.Desired {
		key := r.in.Desired[i].Key
		seen := r.in.Observed[key]
		if !seen.Fenced || seen.Ownership != plan.Ours || key.GroupKind() != kinds.CustomResourceDefinition {
			continue
		}
		if err := r.Guard.Lift(ctx, key); err != nil {
			failed = append(failed, fmt.Errorf("unable to let instances of %s be created again: %w", key, err))
		}
	}
	return errors.Join(failed...)
}

// liftFences takes off the fences of a deletion that turned out to be blocked.
func (r *run) liftFences(ctx context.Context) {
	if !r.task.Deleting || plan.Committed(r.in.Inventory) {
		return
	}
	blocked := func(use plan.Use) bool { return use.State != plan.ForeignNone }
	if !slices.ContainsFunc(slices.Collect(maps.Values(r.in.Uses)), blocked) &&
		!slices.ContainsFunc(slices.Collect(maps.Values(r.in.PatternUses)), blocked) {
		return
	}
	for key, use := range r.in.Uses {
		if use.State == plan.ForeignNone {
			// A fence that stays is lifted by the next request, which finds the deletion blocked as well.
			_ = r.Guard.Lift(ctx, key)
		}
	}
}

// execute carries out a stage. Checks before the deletion of the component first only look: a fence is put up only if nothing
// blocks, or each request would put up and lift the fences of the types that nobody uses; and only once the deletion is announced, for
// whoever hears of it may want to create an instance. The error is that of announcing it: nothing was done then.
func (r *run) execute(ctx context.Context, executor *execute.Executor, stage plan.Stage) ([]execute.Result, error) {
	if !r.task.Deleting || !slices.ContainsFunc(stage.Operations, isCheck) {
		return executor.Run(ctx, stage), nil
	}
	executor.Deleting = false
	results := executor.Run(ctx, stage)
	inVain := func(result execute.Result) bool {
		return result.Operation.Action == plan.ActionCheck && (result.Err != nil || result.Use.State != plan.ForeignNone)
	}
	if slices.ContainsFunc(results, inVain) {
		return results, nil
	}
	if err := r.announce(ctx); err != nil {
		return nil, err
	}
	executor.Deleting = true
	return executor.Run(ctx, stage), nil
}

func isCheck(o plan.Operation) bool { return o.Action == plan.ActionCheck }
