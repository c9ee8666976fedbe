package reconcilers

import (
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// ComponentPlan is what would be done about the objects of a component, see [ComponentReconciler.Plan].
type ComponentPlan struct {
	// Operations are what may be done at once, in canonical order.
	Operations []ComponentOperation
	// Obstacles are what is waited for, or failed before, each in words.
	Obstacles []string
	// Done: there is nothing to do and nothing to wait for.
	Done bool

	text string
}

// ComponentOperation is one thing that would be done.
type ComponentOperation struct {
	// Action is a word such as "create", "apply" or "delete".
	Action string
	// Object is the kind, and the namespace and name.
	Object string
	// Reason says why.
	Reason string
}

// String shows the whole plan, wave by wave, as if each became ready.
func (p *ComponentPlan) String() string {
	return p.text
}

func newComponentPlan(report *engine.Report) *ComponentPlan {
	if report == nil {
		return &ComponentPlan{text: "nothing: the component is suspended\n"}
	}
	p := &ComponentPlan{Done: report.Plan.Done, text: plan.Explain(report.Input)}
	for i := range report.Plan.Next.Operations {
		o := &report.Plan.Next.Operations[i]
		p.Operations = append(p.Operations, ComponentOperation{Action: string(o.Action), Object: o.Key.String(), Reason: o.Reason})
	}
	for _, obstacle := range report.Plan.Obstacles {
		p.Obstacles = append(p.Obstacles, obstacle.Key.String()+": "+obstacle.Message)
	}
	return p
}
