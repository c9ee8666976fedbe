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

// liftFencesOfDesired takes the fences off the types that are desired. A removal that was interrupted has left them. To
// write the definition again would remove its fence, too, but not every definition is written again.
func (r *run) liftFencesOfDesired(ctx context.Context) error {
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

// liftFencesOfBlocked takes off the fences of a deletion that turned out to be blocked.
func (r *run) liftFencesOfBlocked(ctx context.Context) {
	if plan.Committed(r.in.Inventory) {
		return
	}
	blocked := func(use plan.Use) bool { return use.State != plan.ForeignNone }
	if !slices.ContainsFunc(slices.Collect(maps.Values(r.in.Uses)), blocked) &&
		!slices.ContainsFunc(slices.Collect(maps.Values(r.in.PatternUses)), blocked) {
		return
	}
	for key, use := range r.in.Uses {
		if use.State == plan.ForeignNone {
			// After an error, the next request finds the deletion blocked as well, and lifts the fence.
			_ = r.Guard.Lift(ctx, key)
		}
	}
}

// executeChecked carries out a stage. Checks before the deletion of the component are made without fences first. A
// fence is put up only if nothing blocks the deletion; otherwise each request would put up and lift the fences of the
// types without foreign instances. And it is put up only after BeforeDelete, which may create an instance. The error is
// the error of BeforeDelete. Nothing was done then.
func (r *run) executeChecked(
	ctx context.Context, executor *execute.Executor, stage plan.Stage,
) ([]execute.Result, error) {
	if !r.task.Deleting || !slices.ContainsFunc(stage.Operations, isCheck) {
		return executor.Run(ctx, stage), nil
	}
	executor.Deleting = false
	results := executor.Run(ctx, stage)
	blocks := func(result execute.Result) bool {
		return isCheck(result.Operation) && (result.Err != nil || result.Use.State != plan.ForeignNone)
	}
	if slices.ContainsFunc(results, blocks) {
		return results, nil
	}
	if err := r.beforeDelete(ctx); err != nil {
		return nil, err
	}
	executor.Deleting = true
	return executor.Run(ctx, stage), nil
}

func isCheck(o plan.Operation) bool { return o.Action == plan.ActionCheck }
