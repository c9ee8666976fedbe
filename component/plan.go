package component

import (
	"context"
	"fmt"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Plan is what a request would do now about the objects of a component, see [ComponentReconciler.Plan].
type Plan struct {
	// Operations can be done at once. They are in canonical order.
	Operations []Operation
	// Obstacles say what is waited for, and what failed before.
	Obstacles []string
	// Done is true if there is nothing to do and nothing to wait for.
	Done bool
	// Changes are what would be done about each object if all went well, in the order in which it would be.
	Changes []Change
	// Unchanged is the number of desired objects that nothing would be done about.
	Unchanged int
	// Remote is true if the objects are in another cluster than the resource.
	Remote bool

	text string
}

// Change is what would be done about one object, and what that would change in it.
type Change struct {
	Operation
	// Ref names the object.
	Ref reconcilers.ObjectRef
	// Fields says which fields would be changed, and why, such as ".spec.replicas differs". It has no values. Only a
	// plan of [Progress] has it, for the first objects that exist and are written.
	Fields []string
	// Err is why the API server would refuse the change, as far as Fields were asked for.
	Err error
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
	stages, last := plan.Simulate(report.Input)
	p := &Plan{Done: report.Plan.Done, text: plan.Text(stages, last), Operations: operationsOf(&report.Plan.Next)}
	for _, obstacle := range report.Plan.Obstacles {
		p.Obstacles = append(p.Obstacles, obstacle.Key.String()+": "+obstacle.Message)
	}
	changed := map[plan.Key]bool{}
	previews := map[plan.Key]*execute.Preview{}
	for i := range report.Previews {
		previews[report.Previews[i].Key] = &report.Previews[i]
	}
	for i := range stages {
		for j := range stages[i].Operations {
			if o := &stages[i].Operations[j]; o.Action != plan.ActionCheck {
				p.Changes = append(p.Changes, changeOf(o, previews[o.Key]))
				changed[o.Key] = true
			}
		}
	}
	for i := range report.Input.Desired {
		if !changed[report.Input.Desired[i].Key] {
			p.Unchanged++
		}
	}
	return p
}

func changeOf(o *plan.Operation, preview *execute.Preview) Change {
	c := Change{Operation: operationOf(o), Ref: refOf(o.Key)}
	c.Ref.Version = o.Version
	if preview != nil {
		c.Fields, c.Err = preview.Fields, preview.Err
	}
	return c
}

func operationOf(o *plan.Operation) Operation {
	return Operation{Action: string(o.Action), Object: o.Key.String(), Reason: o.Reason}
}

// operationsOf returns what could be done next.
func operationsOf(next *plan.Stage) []Operation {
	var operations []Operation
	for i := range next.Operations {
		operations = append(operations, operationOf(&next.Operations[i]))
	}
	return operations
}

// maxPreviews is how many writes are tried for a fresh plan.
const maxPreviews = 100

// planLater returns how to make a fresh plan after the request, or nil, see [Progress].
func (r *request[T]) planLater(ctx context.Context) func(ctx context.Context) (*Plan, error) {
	visit := reconcilers.Revisit(ctx)
	if visit == nil || r.supervision != reconcilers.Maintain {
		return nil
	}
	node := r.ComponentReconciler
	return func(ctx context.Context) (planned *Plan, err error) {
		ctx, visited, err := visit(ctx)
		if err != nil {
			return nil, err
		}
		resource, ok := visited.(T)
		if !ok {
			return nil, fmt.Errorf("the node sees another type than %s", typeOf(visited))
		}
		defer reconcilers.Recover(ctx, &err)
		return node.plan(ctx, resource, maxPreviews)
	}
}

// Plan returns what Reconcile would do now, and only reads: no hook is called, and neither the resource nor the cluster
// is changed. It reads each object of the component, and may be called while Reconcile runs.
func (r *ComponentReconciler[T]) Plan(ctx context.Context, resource T) (*Plan, error) {
	r.init()
	if err := r.check(); err != nil {
		return nil, err
	}
	var known resourcestate.State
	defer known.Close()
	ctx = reconcilers.Enter(resourcestate.NewContext(ctx, &known), r.Name)
	return r.plan(ctx, resource.DeepCopyObject().(T), 0)
}

// plan returns a plan, with what some writes would change. The resource is changed.
func (r *ComponentReconciler[T]) plan(ctx context.Context, resource T, previews int) (*Plan, error) {
	request, err := r.begin(ctx, resource)
	if err != nil {
		return nil, err
	}
	// Reconcile may run at the same time and uses the state of the resource.
	request.dryRun, request.previews, request.state = true, previews, newResourceState()
	if err := request.deployOrRemove(ctx); err != nil {
		return nil, err
	}
	made := newPlan(request.report)
	made.Remote = request.remote()
	return made, nil
}
