package espalier

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Run is a node that runs a function. [Runs] returns it.
type Run[Type client.Object] struct {
	Ordered[*Run[Type]]

	run       func(ctx context.Context, resource Type) error
	interval  time.Duration
	finalizer string
	finalize  func(ctx context.Context, resource Type) error
}

// Runs returns a node that calls a function, for work that is no child: a service outside the cluster, a value for the
// nodes after it.
//
//   - Runs: the function.
//   - Stops: never on its own. While it waits (Needs, After), the function is not called.
//   - On error: returns it. After [NotReady] the nodes after it run.
//   - On deletion: calls the function of [Run.Finalizes], if the resource has its finalizer.
//   - On [reconcilers.Withdraw]: as on deletion, if the finalizer is on the resource.
func Runs[Type client.Object](name string, run func(ctx context.Context, resource Type) error) *Run[Type] {
	node := &Run[Type]{run: run}
	node.self, node.rules = node, rules{word: "Runs", name: name, desires: true}
	return node
}

// Reports has the node report by a condition of that type whether the function returned an error: True with the reason
// Succeeded; False with the reason of [NotReady] or of the API server, or Failed.
func (r *Run[Type]) Reports(conditionType string) *Run[Type] {
	r.condition = conditionType
	return r
}

// Every has the resource reconciled again at the latest after that time.
func (r *Run[Type]) Every(interval time.Duration) *Run[Type] {
	r.interval = interval
	return r
}

// Finalizes has the node put a finalizer on the resource before it calls its function, and take it off when finalize
// returned no error for the terminating resource. It is for state that Kubernetes does not delete with the resource.
// The finalizer is a qualified name of its own, such as "example.com/registry".
//
// The function finalize may be called again after it succeeded. If it returns [NotReady], it is called again after the
// delay, or, without a delay, with back-off.
func (r *Run[Type]) Finalizes(finalizer string, finalize func(ctx context.Context, resource Type) error) *Run[Type] {
	r.finalizer, r.finalize = finalizer, finalize
	return r
}

// Absent serves the finalizer of [Run.Finalizes], which it needs, when an earlier version of the program has set it:
// the function of Finalizes is called for each resource that has the finalizer, terminating or not, and then the
// finalizer goes. The function of Runs may be nil, and is not called. A resource without the finalizer costs nothing.
// Remove the node when no resource has the finalizer any more.
func (r *Run[Type]) Absent() *Run[Type] {
	r.use(absent)
	return r
}

// SetupWithManager validates.
func (r *Run[Type]) SetupWithManager(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
	ctx = reconcilers.Enter(ctx, r.name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return checkStatus(ctx, "Runs", r.name, r.condition)
}

// Validate checks that the functions are set, and that the finalizer is.
func (r *Run[Type]) Validate(context.Context) error {
	switch {
	case r.run == nil && !r.has(absent):
		return r.errorf("must have a function")
	case r.has(absent) && r.finalizer == "" && r.finalize == nil:
		return r.errorf("must have Finalizes to be Absent")
	case r.finalizer == "" && r.finalize != nil:
		return r.errorf("must have the name of a finalizer")
	case r.finalizer != "" && r.finalize == nil:
		return r.errorf("must have a function to finalize")
	}
	return r.check()
}

// Reconcile calls one of the functions, see [Runs].
func (r *Run[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	var none reconcilers.Result
	if err := r.Validate(ctx); err != nil {
		return none, err
	}
	ctx = reconcilers.Enter(ctx, r.name)
	if reconcilers.CleansUp(ctx, resource) || r.has(absent) {
		return r.cleanUp(ctx, resource)
	}
	if unmet := reconcilers.Unmet(ctx, &r.order); unmet != "" {
		reconcilers.NotDone(ctx)
		r.report(ctx, resource, waitingFor(unmet))
		return none, nil
	}
	if err := reconcilers.AddFinalizer(ctx, resource, r.finalizer); err != nil {
		return none, err
	}
	err := r.run(ctx, resource)
	r.reportError(ctx, resource, err)
	if asNotReady(err) != nil {
		reconcilers.NotDone(ctx)
		return reconcilers.AggregateResults(
			reconcilers.Result{RequeueAfter: r.interval}, reconcilers.Result{RequeueAfter: delayOf(err)}), nil
	}
	if err != nil {
		return none, reconcilers.Failed(ctx, nil, err)
	}
	return reconcilers.Result{RequeueAfter: r.interval}, nil
}

// cleanUp takes the finalizer off, once the function of Finalizes returned no error.
func (r *Run[Type]) cleanUp(ctx context.Context, resource Type) (reconcilers.Result, error) {
	var none reconcilers.Result
	if r.finalizer != "" && controllerutil.ContainsFinalizer(resource, r.finalizer) {
		if err := r.finalize(ctx, resource); err != nil {
			return r.cleanUpLater(ctx, resource, err)
		}
		if err := reconcilers.ClearFinalizer(ctx, resource, r.finalizer); err != nil {
			return none, err
		}
	}
	if !reconcilers.CleansUp(ctx, resource) {
		r.report(ctx, resource, metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonNotDesired})
	}
	return none, nil
}

// cleanUpLater returns what the node returns if the function of Finalizes returned err.
func (r *Run[Type]) cleanUpLater(ctx context.Context, resource Type, err error) (reconcilers.Result, error) {
	var none reconcilers.Result
	r.reportError(ctx, resource, err)
	if asNotReady(err) == nil {
		return none, reconcilers.Failed(ctx, nil, err)
	}
	reconcilers.NotDone(ctx)
	if delay := delayOf(err); delay > 0 {
		return reconcilers.Result{RequeueAfter: delay}, nil
	}
	return none, errors.Join(err, reconcilers.ErrQuiet)
}

func (r *Run[Type]) reportError(ctx context.Context, resource Type, err error) {
	if errors.Is(err, reconcilers.ErrQuiet) {
		return
	}
	condition := conditionOfError(err)
	if err == nil {
		condition = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonSucceeded}
	}
	r.report(ctx, resource, condition)
}

// Describe returns the finalizer, and the condition that the node reports.
func (r *Run[Type]) Describe() reconcilers.Description {
	description := reconcilers.Description{
		Kind:       "Runs",
		Name:       r.name,
		Detail:     r.finalizer,
		Conditions: conditions(r.condition),
		Order:      r.orderOf(),
	}
	if r.has(absent) {
		description.Detail += " Absent"
	}
	if r.finalizer != "" {
		description.Finalizers = []string{r.finalizer}
		description.Uses = []reconcilers.Access{{Verbs: []string{"patch"}}}
	}
	return description
}
