package engine

import (
	"context"

	"github.com/espalier-dev/espalier/internal/component/plan"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preview tries writes of objects that exist on the API server, without an effect.
func (r *run) preview(ctx context.Context) {
	if r.task.Previews == 0 {
		return
	}
	stages, _ := plan.Simulate(r.in)
	var tried plan.Stage
	seen := map[plan.Key]bool{}
	for _, stage := range stages {
		for _, o := range stage.Operations {
			if !seen[o.Key] && writesExisting(&o) && len(tried.Operations) < r.task.Previews {
				tried.Operations = append(tried.Operations, o)
			}
			seen[o.Key] = true
		}
	}
	executor := r.executor(plan.Plan{Next: tried})
	executor.Client, executor.Seen = client.NewDryRunClient(r.Client), nil
	r.report.Previews = executor.Preview(ctx, tried)
}

func writesExisting(o *plan.Operation) bool {
	switch o.Action {
	case plan.ActionAdopt, plan.ActionRelabel, plan.ActionApply, plan.ActionReplace:
		return o.UID != "" && !o.IsSimulated()
	}
	return false
}
