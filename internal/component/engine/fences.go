package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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

// liftFencesOfBlocked takes off the fences of a deletion that turned out to be blocked. The guard makes no request for
// a definition that this request has read, and that has no fence.
func (r *run) liftFencesOfBlocked(ctx context.Context) {
	if plan.Committed(r.in.Inventory) {
		return
	}
	blocked := func(use plan.Use) bool { return use.State > plan.ForeignNone }
	if !slices.ContainsFunc(slices.Collect(maps.Values(r.in.Uses)), blocked) &&
		!slices.ContainsFunc(slices.Collect(maps.Values(r.in.PatternUses)), blocked) {
		return
	}
	r.Memory.calledBeforeDelete = false
	for key, use := range r.in.Uses {
		if use.State == plan.ForeignNone || use.State == plan.ForeignFenced {
			// After an error, the next request finds the deletion blocked as well, and lifts the fence.
			_ = r.Guard.Lift(ctx, key)
		}
	}
	for key, seen := range r.in.Observed {
		if _, checked := r.in.Uses[key]; !checked && seen.Fenced && seen.Ownership == plan.Ours {
			_ = r.Guard.Lift(ctx, key)
		}
	}
}

// noteLeft reports objects that are left, and takes off their fences, unless others have them.
func (r *run) noteLeft(ctx context.Context, left []plan.Obstacle) {
	for _, object := range left {
		if slices.Contains(r.report.Left, object) {
			continue
		}
		r.report.Left = append(r.report.Left, object)
		if seen := r.in.Observed[object.Key]; seen.Fenced && seen.Ownership != plan.Foreign && !r.task.DryRun {
			_ = r.Guard.Lift(ctx, object.Key) // nothing of it is ours any more
		}
	}
}

// marginsOver is when to come back if the margins of fences are all that is waited for; else zero.
func (r *run) marginsOver() time.Time {
	left := r.report.Plan.Obstacles
	if len(left) == 0 || slices.ContainsFunc(left, func(o plan.Obstacle) bool {
		return r.in.Uses[o.Key].State != plan.ForeignFenced
	}) {
		return time.Time{}
	}
	return r.report.Plan.Recheck
}

// executeChecked carries out a stage. Before the deletion of the component, fences are put up for all types or none,
// and in three steps. First everything is checked without fences; otherwise each request would put up and lift the
// fences of the types without foreign instances. Then admission is asked by a dry run whether it refuses a fence. Last
// comes BeforeDelete, which may create an instance, and the fences. The error is the error of BeforeDelete. Nothing was
// done then.
func (r *run) executeChecked(
	ctx context.Context, executor *execute.Executor, stage plan.Stage,
) ([]execute.Result, error) {
	results := executor.Run(ctx, stage)
	if !r.task.Deleting || !slices.ContainsFunc(stage.Operations, isCheck) || slices.ContainsFunc(results, blocks) {
		return results, nil
	}
	executor.Fence(ctx, results, true)
	if slices.ContainsFunc(results, blocks) {
		return results, nil
	}
	if err := r.beforeDelete(ctx); err != nil {
		return nil, err
	}
	executor.Fence(ctx, results, false)
	return results, nil
}

// blocks reports whether a check has found that the component may not be deleted now.
func blocks(result execute.Result) bool {
	return isCheck(result.Operation) && (result.Err != nil || result.Use.State != plan.ForeignNone)
}

func isCheck(o plan.Operation) bool { return o.Action == plan.ActionCheck }
