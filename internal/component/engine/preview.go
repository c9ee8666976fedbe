package engine

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type trialsKey struct{}

// WithTrials returns a context with which a dry run tries all writes on the API server, and not only those that the
// task asks for: those of objects that do not exist too. Each is passed to tell.
func WithTrials(ctx context.Context, tell func(execute.Preview)) context.Context {
	return context.WithValue(ctx, trialsKey{}, tell)
}

// preview tries writes on the API server, without an effect: of objects that exist, and of all with [WithTrials].
func (r *run) preview(ctx context.Context) {
	tell, all := ctx.Value(trialsKey{}).(func(execute.Preview))
	if r.task.Previews == 0 && !all {
		return
	}
	stages, _ := plan.Simulate(r.in)
	var tried plan.Stage
	seen := map[plan.Key]bool{}
	for _, stage := range stages {
		for _, o := range stage.Operations {
			tries := writesExisting(&o) && len(tried.Operations) < r.task.Previews ||
				all && (writesExisting(&o) || o.Action == plan.ActionCreate && !o.IsSimulated())
			if tries && !seen[o.Key] {
				tried.Operations = append(tried.Operations, o)
			}
			seen[o.Key] = true
		}
	}
	executor := r.executor(plan.Plan{Next: tried})
	executor.Client, executor.Seen = client.NewDryRunClient(r.Client), nil
	r.report.Previews = executor.Preview(ctx, tried)
	if all {
		for _, preview := range r.report.Previews {
			tell(preview)
		}
	}
}

func writesExisting(o *plan.Operation) bool {
	switch o.Action {
	case plan.ActionAdopt, plan.ActionRelabel, plan.ActionApply, plan.ActionReplace:
		return o.UID != "" && !o.IsSimulated()
	}
	return false
}
