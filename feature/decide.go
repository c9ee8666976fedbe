package feature

import (
	"fmt"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// facts are what a request found out about a feature.
type facts struct {
	// gate is the text of the error of the gate, or of Suspended.
	gate string
	// prerequisite says which prerequisite is not met, or which error it returned.
	prerequisite string
	// supervision is what the objects are told. They are withdrawn, too, after the gate was off, if a prerequisite is
	// not met.
	supervision reconcilers.Supervision
	// summary is how the objects are. It is empty if they were not looked at.
	summary summary

	now        time.Time
	generation int64
	grace      time.Duration
	records    Records
}

// decision is what a feature reports.
type decision struct {
	event   event
	status  metav1.ConditionStatus
	reason  apis.State
	message string
	record  apis.FeatureStatus
	// requeueAfter is when the grace period ends; zero if that does not matter.
	requeueAfter time.Duration
}

// decide decides what a feature reports, by the table of transitions.
func decide(record apis.FeatureStatus, f facts) decision {
	if record.Phase == "" {
		record.Phase = apis.FeatureWaiting
	}
	begun := record.Since.IsZero()
	// The grace period is that of the phase that the request found. A new generation does not start it again: a spec
	// that changes all the time would never be graded.
	ends := time.Time{}
	if record.Phase == apis.FeatureProgressing && !begun {
		ends = endOfGrace(record.Since.Time, f.grace)
	}
	e := eventOf(f, !ends.IsZero() && !f.now.Before(ends))
	t := transitionOf(e)

	d := decision{event: e, status: t.status, reason: t.reason, message: messageOf(e, f), record: record}
	if d.reason == "" {
		d.reason = f.summary.state
	}
	if t.passed != nil {
		d.record.Passed = *t.passed
	}
	if t.phase != "" {
		d.record.Phase = t.phase
	}
	if d.record.Phase != record.Phase || begun {
		d.record.Since, d.record.Generation = metav1.Time{Time: f.now.Truncate(time.Second)}, f.generation
	}
	if e != gateFails {
		d.record.Dependents, d.record.OmittedDependents = f.records.entries(record.Dependents, f)
	}
	if t.requeues {
		if ends := endOfGrace(d.record.Since.Time, f.grace); f.now.Before(ends) {
			d.requeueAfter = ends.Sub(f.now)
		}
	}
	return d
}

// endOfGrace returns the first whole second when the grace period is over, or the zero time if there is none.
func endOfGrace(since time.Time, grace time.Duration) time.Time {
	if grace <= 0 {
		return time.Time{}
	}
	end := since.Add(grace)
	if whole := end.Truncate(time.Second); whole.Before(end) {
		return whole.Add(time.Second)
	}
	return end
}

// eventOf says what happened. The first case that holds counts. expired is true if the grace period is over.
func eventOf(f facts, expired bool) event {
	s := f.summary
	switch {
	case f.gate != "":
		return gateFails
	case f.supervision == reconcilers.Withdraw:
		if e := withdrawEvent(s); e != withdrawn || f.prerequisite == "" {
			return e
		}
		return prerequisiteMissing
	case f.prerequisite != "":
		return prerequisiteMissing
	case f.supervision == reconcilers.Suspend:
		return suspendEvent(s.state)
	case s.state == apis.StateError:
		return fails
	case health.Healthy(s.state):
		return becomesHealthy
	case expired && s.grade == apis.StateDown:
		return gradedDown
	case expired && s.grade == apis.StateDegraded:
		return gradedDegraded
	case s.state == apis.StateUnknown:
		return notReported
	case expired:
		return notGraded
	}
	return notHealthy
}

func withdrawEvent(s summary) event {
	switch {
	case s.state == apis.StateError:
		return withdrawalFails
	case s.left > 0 || s.state == apis.StateUnknown:
		return withdraws
	}
	return withdrawn
}

func suspendEvent(state apis.State) event {
	switch state {
	case apis.StateError:
		return suspensionFails
	case apis.StatePendingSuspension:
		return suspensionPending
	case apis.StateSuspended, apis.StateHealthy:
		return suspended
	case apis.StateUnknown:
		return suspensionUnknown
	}
	return suspends
}

// messageOf returns the message of the condition.
func messageOf(e event, f facts) string {
	text := f.summary.message
	switch e {
	case gateFails:
		text = f.gate
	case prerequisiteMissing:
		text = f.prerequisite
	case withdraws:
		if f.summary.left > 0 {
			text = "not gone yet: " + f.summary.leftMessage
		}
	case gradedDown, gradedDegraded:
		text = fmt.Sprintf("not healthy after %s: %s", f.grace, f.summary.gradeMessage)
	case withdrawn, suspended, becomesHealthy:
		text = ""
	}
	return message.Truncate(text, maxMessage)
}

// asDesired returns which objects are as they should be under a supervision.
func asDesired(supervision reconcilers.Supervision) func(dependent) bool {
	switch supervision {
	case reconcilers.Withdraw:
		return func(d dependent) bool { return !d.left && d.State != apis.StateError && d.State != apis.StateUnknown }
	case reconcilers.Suspend:
		return func(d dependent) bool { return d.State == apis.StateSuspended }
	}
	return func(d dependent) bool { return health.Healthy(d.State) }
}

// transitionOf returns the row of an event.
func transitionOf(e event) transition {
	return machine[slices.IndexFunc(machine, func(t transition) bool { return t.event == e })]
}
