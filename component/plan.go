package component

import (
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// Plan is what a request would do now about the objects of a component, see [ComponentReconciler.Plan].
type Plan struct {
	// Operations can be done at once. They are in canonical order.
	Operations []Operation
	// Obstacles say what is waited for, and what failed before.
	Obstacles []string
	// Done is true if there is nothing to do and nothing to wait for.
	Done bool

	text string
}

// Operation is what would be done about one object.
type Operation struct {
	// Action is a word such as "create", "apply" or "delete".
	Action string
	// Object is the kind, namespace and name.
	Object string
	// Reason says why.
	Reason string
}

// String shows the whole plan, wave by wave, as if each became ready.
func (p *Plan) String() string {
	return p.text
}

func newPlan(report *engine.Report) *Plan {
	if report == nil {
		return &Plan{text: "nothing: the component is suspended\n"}
	}
	p := &Plan{Done: report.Plan.Done, text: plan.Explain(report.Input)}
	p.Operations = operationsOf(report)
	for _, obstacle := range report.Plan.Obstacles {
		p.Obstacles = append(p.Obstacles, obstacle.Key.String()+": "+obstacle.Message)
	}
	return p
}

// operationsOf returns what could be done next.
func operationsOf(report *engine.Report) []Operation {
	var operations []Operation
	for i := range report.Plan.Next.Operations {
		o := &report.Plan.Next.Operations[i]
		operations = append(operations, Operation{Action: string(o.Action), Object: o.Key.String(), Reason: o.Reason})
	}
	return operations
}
