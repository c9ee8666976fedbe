package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/observe"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// executeStage carries out the stage of a plan and adds the results to the input of the next plan. failed joins the
// errors of objects. err is the error of BeforeDelete. Nothing was done then.
func (r *run) executeStage(ctx context.Context, p plan.Plan) (failed, err error) {
	if slices.ContainsFunc(p.Next.Operations, func(o plan.Operation) bool { return !isCheck(o) }) {
		if err := r.beforeDelete(ctx); err != nil {
			return nil, err
		}
	}
	executor := r.executor(p)
	r.identifyWriters(ctx, executor, p.Next)
	r.ensureNamespaces(ctx, executor, p.Next)
	for i := range p.Next.Operations {
		if o := &p.Next.Operations[i]; o.Action == plan.ActionCreate {
			// From here on it may exist, even if the answer gets lost.
			delete(r.Memory.fresh, o.Key)
			if r.unsaved == nil {
				r.unsaved = map[plan.Key]bool{}
			}
			r.unsaved[o.Key] = true
		}
	}
	results, err := r.executeChecked(ctx, executor, p.Next)
	if err != nil {
		return nil, err
	}
	if r.task.NamespaceGoes != nil {
		results = r.leaveUndeletable(ctx, results)
	}
	r.countCorrections(results)

	outcomes := make([]plan.Outcome, 0, len(results))
	var problems []error
	for i := range results {
		outcome, err := r.addResult(&results[i])
		outcomes = append(outcomes, outcome)
		if err != nil {
			key := results[i].Operation.Key
			if object := r.objects[key]; object == nil || !object.Desired.Auxiliary {
				problems = append(problems, err)
			}
			if r.report.Failures == nil {
				r.report.Failures = map[plan.Key]error{}
			}
			r.report.Failures[key] = err
		}
		if results[i].Err == nil {
			if r.succeeded == nil {
				r.succeeded = make(map[operationKey]bool, len(results))
			}
			r.succeeded[keyOf(&results[i].Operation)] = true
		}
	}
	r.report.Results = append(r.report.Results, results...)
	r.planner.Add(outcomes)
	return errors.Join(problems...), nil
}

// observeDeleted observes once more after the run has deleted all that it could, when watches had a moment to show it.
// Most objects are gone at once, and the component with them, so no inventory is stored that says otherwise.
func (r *run) observeDeleted(ctx context.Context) (again bool, err error) {
	if !r.task.Deleting || r.task.DryRun || r.awaitedDeleted || len(r.succeeded) == 0 {
		return false, nil
	}
	r.awaitedDeleted = true
	if !r.Observer.AwaitDeleted(ctx, r.Component) {
		return false, nil
	}
	r.in.Inventory = r.planner.Inventory()
	r.report.Inventory = r.in.Inventory
	if err := r.observe(ctx); err != nil {
		return false, err
	}
	r.planner = plan.New(&r.in)
	// What another client has created again since is deleted again.
	clear(r.succeeded)
	return true, nil
}

// executor returns what carries out the next stage of a plan.
func (r *run) executor(p plan.Plan) *execute.Executor {
	return &execute.Executor{
		Client:       r.Client,
		Guard:        r.Guard,
		Mark:         r.Mark,
		FieldManager: r.FieldManager,
		Reclaim:      r.Reclaim,
		Parallel:     r.Parallel,
		Patterns:     r.task.Patterns,
		Objects:      r.objects,
		Records:      r.recordsOf(p.Next),
		Managed: func(key plan.Key) []metav1.ManagedFieldsEntry {
			return r.Observer.Managed(r.Component, key)
		},
		Seen: r.seen,
	}
}

// beforeDelete calls BeforeDelete before the first operation that deletes anything, unless an earlier request did.
func (r *run) beforeDelete(ctx context.Context) error {
	if !r.task.Deleting || r.Memory.calledBeforeDelete || r.task.BeforeDelete == nil || plan.Committed(r.in.Inventory) {
		return nil
	}
	err := r.task.BeforeDelete(ctx)
	r.Memory.calledBeforeDelete = err == nil
	return err
}

// beforeCreate calls BeforeCreate before the first creation.
func (r *run) beforeCreate(ctx context.Context, p plan.Plan) error {
	creates := func(o plan.Operation) bool { return o.Action == plan.ActionCreate }
	if r.calledBeforeCreate || r.task.BeforeCreate == nil || !slices.ContainsFunc(p.Next.Operations, creates) {
		return nil
	}
	r.calledBeforeCreate = true
	return r.task.BeforeCreate(ctx)
}

// recordsOf returns the records of the objects of a stage.
func (r *run) recordsOf(stage plan.Stage) map[plan.Key]apis.InventoryRecord {
	records := make(map[plan.Key]apis.InventoryRecord, len(stage.Operations))
	for i := range stage.Operations {
		key := stage.Operations[i].Key
		if record, ok := r.planner.Record(key); ok {
			records[key] = record
		}
	}
	return records
}

// ensureNamespaces creates the namespaces that objects of the stage need, each once.
func (r *run) ensureNamespaces(ctx context.Context, executor *execute.Executor, stage plan.Stage) {
	wanted := map[string]bool{}
	for i := range stage.Operations {
		o, namespace := &stage.Operations[i], stage.Operations[i].Key.Namespace
		if o.Action == plan.ActionCreate && namespace != "" && !r.Memory.namespaces[namespace] {
			wanted[namespace] = true
		}
	}
	missing := slices.DeleteFunc(slices.Clone(r.task.Namespaces), func(name string) bool { return !wanted[name] })
	if len(missing) == 0 {
		return
	}
	// If a namespace cannot be created, the creation of an object in it has a better error.
	problems := executor.EnsureNamespaces(ctx, missing)
	if r.Memory.namespaces == nil {
		r.Memory.namespaces = map[string]bool{}
	}
	for _, name := range missing {
		if problems[name] == nil {
			r.Memory.namespaces[name] = true
		}
	}
}

// seen tells the observer of an object that the API server returned. The result need not keep the object then.
func (r *run) seen(operation plan.Operation, object *unstructured.Unstructured) plan.Observed {
	interest := r.interests[operation.Key]
	if interest == nil {
		interest = &observe.Interest{Key: operation.Key, Version: operation.Version}
	}
	return r.Observer.Wrote(r.Component, *interest, object)
}

// Created reports whether the run created anything, or may have.
func (r *Report) Created() bool {
	return slices.ContainsFunc(r.Results, func(result execute.Result) bool {
		return result.Operation.Action == plan.ActionCreate
	})
}

// addResult adds a result to the input of the next plan. The error is one to report. It is none if an object exists
// already or has to be waited for.
func (r *run) addResult(result *execute.Result) (plan.Outcome, error) {
	operation := result.Operation
	outcome := plan.Outcome{Operation: operation, Err: result.Err, Use: result.Use}
	key := operation.Key
	if result.Observed.Presence == plan.Present {
		outcome.Observed = result.Observed
		r.in.Observed[key] = outcome.Observed
		delete(r.Memory.fresh, key)
	}
	if result.Use.Unfenced {
		r.rememberRefusal(key, result.Use)
	}
	if operation.Action == plan.ActionCheck {
		use := result.Use
		if result.Err != nil {
			use = plan.Use{State: plan.ForeignUnknown, Reason: result.Err.Error()}
		}
		if operation.Pattern >= 0 {
			r.in.PatternUses[operation.Pattern] = use
		} else {
			r.in.Uses[key] = use
		}
		return outcome, result.Err
	}
	if result.Err != nil {
		r.noteRefusal(result)
		return outcome, r.addFailure(result)
	}
	switch operation.Action {
	case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate, plan.ActionDeleteType, plan.ActionDeleteNamespace:
		r.addRemoval(result, &outcome)
	}
	return outcome, nil
}

// addFailure adds what could not be done. The error is nil if it is not to be reported.
func (r *run) addFailure(result *execute.Result) error {
	var exists *execute.ExistsError
	var wait *execute.WaitError
	var stale *execute.StaleError
	key := result.Operation.Key
	if result.Operation.Action == plan.ActionCreate && isRefusal(result.Err) {
		r.Memory.setFresh(key)
	}
	if errors.As(result.Err, &exists) && result.Exists {
		// The next plan decides whether it is adopted.
		return nil
	}
	r.in.Failed[key] = result.Err.Error()
	delete(r.Memory.namespaces, key.Namespace)
	if errors.As(result.Err, &wait) || errors.As(result.Err, &stale) {
		r.report.Waits = true
		return nil
	}
	return result.Err
}

// addRemoval adds what a successful operation removed.
func (r *run) addRemoval(result *execute.Result, outcome *plan.Outcome) {
	operation := result.Operation
	if operation.Action == plan.ActionDeleteType || result.Use.State != plan.ForeignUnchecked {
		r.in.Uses[operation.Key] = result.Use
		if result.Use.State != plan.ForeignNone {
			return
		}
	}
	r.Observer.Deleted(r.Component, operation.Key, operation.UID, result.Gone)
	seen := r.in.Observed[operation.Key]
	if result.Gone {
		seen = plan.Observed{Presence: plan.Absent}
	} else {
		seen.Terminating = true
	}
	r.in.Observed[operation.Key] = seen
	outcome.Observed = seen
}

// isRefusal reports whether a creation certainly had no effect. After any other error it may have had one, and the
// answer got lost.
func isRefusal(err error) bool {
	var status apierrs.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrs.IsTimeout(err) && !apierrs.IsAlreadyExists(err)
}

// operationKey is what an operation does, and to which object.
type operationKey struct {
	plan.Key
	action  plan.Action
	pattern int
}

func keyOf(o *plan.Operation) operationKey {
	return operationKey{Key: o.Key, action: o.Action, pattern: o.Pattern}
}

// isDesired reports whether an object is desired, and not to leave.
func (r *run) isDesired(key plan.Key) bool {
	_, leaves := r.in.Leaving[key]
	return r.objects[key] != nil && !leaves
}
