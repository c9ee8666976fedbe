package engine

import (
	"errors"

	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// take turns a result into an outcome, and notes what it shows. The error is one that somebody has to hear of: to find that an
// object exists already, or has to be waited for, is none.
func (r *run) take(result *execute.Result) (plan.Outcome, error) {
	operation := result.Operation
	outcome := plan.Outcome{Operation: operation, Err: result.Err, Use: result.Use}
	key := operation.Key
	if operation.Action == plan.ActionCheck {
		if operation.Pattern >= 0 {
			r.in.PatternUses[operation.Pattern] = useOf(result)
		} else {
			r.in.Uses[key] = useOf(result)
		}
		return outcome, result.Err
	}
	interest := r.interestIn(key, operation.Version)
	if result.Object != nil {
		outcome.Observed = r.Observer.Wrote(r.Component, interest, result.Object)
		r.in.Observed[key] = outcome.Observed
		delete(r.Memory.fresh, key)
	}
	if result.Err != nil {
		return outcome, r.takeFailure(result)
	}
	r.takeRemoval(result, &outcome)
	return outcome, nil
}

// takeFailure notes what could not be done. The error is nil if nobody has to hear of it.
func (r *run) takeFailure(result *execute.Result) error {
	var exists *execute.ExistsError
	var wait *execute.WaitError
	var stale *execute.StaleError
	key := result.Operation.Key
	if result.Operation.Action == plan.ActionCreate && isRefusal(result.Err) {
		r.Memory.note(key)
	}
	if errors.As(result.Err, &exists) && result.Object != nil {
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

// takeRemoval notes what a successful operation took away.
func (r *run) takeRemoval(result *execute.Result, outcome *plan.Outcome) {
	operation := result.Operation
	switch operation.Action {
	case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate, plan.ActionDeleteType:
	default:
		return
	}
	if guarded := operation.Action == plan.ActionDeleteType || result.Use.State != plan.ForeignUnchecked; guarded {
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

// useOf is what a check found out; if it failed, that is not known.
func useOf(result *execute.Result) plan.Use {
	if result.Err != nil {
		return plan.Use{State: plan.ForeignUnknown, Reason: result.Err.Error()}
	}
	return result.Use
}

// isRefusal tells whether a creation certainly had no effect. Any other error may have been lost on the way back.
func isRefusal(err error) bool {
	var status apierrs.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrs.IsTimeout(err) && !apierrs.IsAlreadyExists(err)
}
