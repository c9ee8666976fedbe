package execute

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/foreign"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/kinds"
)

// isGuarded reports whether an operation deletes an object whose deletion deletes what is in it: the instances of a
// type or the objects in a namespace. An APIService is none: the server behind it keeps the instances.
func (e *Executor) isGuarded(op *plan.Operation) bool {
	kind := op.Key.GroupKind()
	container := kinds.IsContainer(kind) && kind != kinds.APIService
	switch op.Action {
	case plan.ActionDeleteType, plan.ActionDeleteNamespace:
		return true
	case plan.ActionRecreate:
		return container
	case plan.ActionDelete:
		return container && !e.Records[op.Key].IgnoreForeignInstances
	}
	return false
}

// deleteGuarded executes the operations of the results at these positions. The guard gets them all at
// once, since it has to wait for each, and can do so for all at the same time.
func (e *Executor) deleteGuarded(ctx context.Context, results []Result, positions []int) {
	targets := make([]foreign.Target, 0, len(positions))
	asked := make([]*Result, 0, len(positions))
	for _, i := range positions {
		result := &results[i]
		switch op := &result.Operation; {
		case ctx.Err() != nil:
			e.conclude(result, ctx.Err())
		case e.Guard == nil:
			e.conclude(result, errNoGuard)
		case op.UID == "":
			e.conclude(result, errNoUID)
		default:
			targets, asked = append(targets, foreign.Target{Key: op.Key, UID: op.UID}), append(asked, result)
		}
	}
	if len(targets) == 0 {
		return
	}
	for i, outcome := range e.Guard.Delete(ctx, targets) {
		e.setOutcome(asked[i], outcome)
	}
}

func (e *Executor) setOutcome(result *Result, outcome foreign.Outcome) {
	result.Use, result.Object = outcome.Use, outcome.Object
	e.conclude(result, outcome.Err)
}

// check finds out how others use types.
func (e *Executor) check(ctx context.Context, result *Result) (err error) {
	op := result.Operation
	switch {
	case op.Pattern < 0:
		result.Use, err = e.Guard.Check(ctx, op.Key)
	case op.Pattern < len(e.Patterns):
		result.Use, err = e.Guard.CheckPattern(ctx, e.Patterns[op.Pattern])
	default:
		err = errNoPattern
	}
	return err
}

// Fence continues checks that found nothing: it fences off the creation of instances of all types of objects that were
// checked, or of none, and sets their results. Checks of patterns are made again, since nothing fences off these types.
// With dryRun, it only finds out whether a fence would be refused, and makes no check again.
func (e *Executor) Fence(ctx context.Context, results []Result, dryRun bool) {
	var keys []plan.Key
	var fenced, patterns []*Result
	for i := range results {
		result := &results[i]
		if result.Operation.Pattern < 0 {
			keys, fenced = append(keys, result.Operation.Key), append(fenced, result)
		} else if !dryRun {
			patterns = append(patterns, result)
		}
	}
	if len(keys) > 0 {
		for i, outcome := range e.Guard.Fence(ctx, keys, dryRun) {
			e.setOutcome(fenced[i], outcome)
		}
	}
	e.parallelize(ctx, len(patterns), func(i int) { e.execute(ctx, patterns[i]) })
}
