package components

import (
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition of a component, and of the events about it.
const (
	ReasonFirstSeen          = "FirstSeen"
	ReasonRetrying           = "Retrying"
	ReasonRestarting         = "Restarting"
	ReasonProcessing         = "Processing"
	ReasonReady              = "Ready"
	ReasonError              = "Error"
	ReasonTimeout            = "Timeout"
	ReasonSuspended          = "Suspended"
	ReasonDeletionRetrying   = "DeletionRetrying"
	ReasonDeletionBlocked    = "DeletionBlocked"
	ReasonDeletionProcessing = "DeletionProcessing"
)

// facts are what a request found out about a component.
type facts struct {
	deleting, suspended bool
	// recorded is true if objects were recorded. They are created once the records are durable.
	recorded bool
	// first is true if nothing was ever rolled out, changed if what is rolled out differs from before.
	first, changed bool
	// done is true if there is nothing left to do and to wait for.
	done bool
	// blocked is true if others use a type that would be deleted.
	blocked bool
	// overdue is true if the roll-out takes longer than the timeout.
	overdue bool
	// retriable is true if err says when to try again.
	retriable bool
	// progress says what is waited for.
	progress string
	err      error
}

// condition is what the status says.
type condition struct {
	state   apis.ComponentState
	reason  string
	message string
}

// conditionOf decides what the status says. The first case that holds counts.
func conditionOf(s facts) condition {
	switch {
	case s.suspended && !s.deleting:
		return condition{apis.ComponentPending, ReasonSuspended, "Reconciliation is suspended"}
	case s.err != nil:
		return errorCondition(s)
	case s.deleting && s.blocked:
		return condition{apis.ComponentDeleting, ReasonDeletionBlocked, "Deletion blocked: " + s.progress}
	case s.deleting:
		return condition{apis.ComponentDeleting, ReasonDeletionProcessing, orElse(message.Capitalize(s.progress), "Waiting for the objects to go")}
	case s.done:
		return condition{apis.ComponentReady, ReasonReady, "All objects are as desired, and ready"}
	case s.overdue:
		return condition{apis.ComponentError, ReasonTimeout, "Timed out: " + orElse(s.progress, "the objects are not ready")}
	case s.recorded && s.first:
		return condition{apis.ComponentPending, ReasonFirstSeen, "The objects are recorded"}
	case s.recorded && s.changed:
		return condition{apis.ComponentProcessing, ReasonRestarting, "The objects have changed"}
	}
	return condition{apis.ComponentProcessing, ReasonProcessing, orElse(message.Capitalize(s.progress), "Waiting for the objects")}
}

func errorCondition(s facts) condition {
	text := message.Truncate(message.Capitalize(s.err.Error()), maxMessage)
	switch {
	case s.retriable && s.deleting:
		return condition{apis.ComponentDeletionPending, ReasonDeletionRetrying, text}
	case s.retriable && s.overdue:
		return condition{apis.ComponentPending, ReasonTimeout, text}
	case s.retriable:
		return condition{apis.ComponentPending, ReasonRetrying, text}
	case s.overdue && !s.deleting:
		return condition{apis.ComponentError, ReasonTimeout, text}
	}
	return condition{apis.ComponentError, ReasonError, text}
}

// conditionStatus is the status of the condition in a state.
func conditionStatus(state apis.ComponentState) metav1.ConditionStatus {
	switch state {
	case apis.ComponentReady:
		return metav1.ConditionTrue
	case apis.ComponentError:
		return metav1.ConditionFalse
	}
	return metav1.ConditionUnknown
}

// maxMessage bounds what a condition says, in bytes.
const maxMessage = 1024

func orElse(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}

// rolloutTimer is the part of the status that says since when a roll-out has been under way.
type rolloutTimer struct {
	digest string
	since  time.Time
}

// tick returns the clock after a request. A roll-out begins when the component digest changes, and when what was ready
// is not any more; it ends when the component is ready. The time of errors counts as well.
func (c rolloutTimer) tick(digest string, ready, deleting bool, now time.Time) rolloutTimer {
	switch {
	case deleting:
		return rolloutTimer{}
	case ready:
		return rolloutTimer{digest: digest}
	case c.digest != digest || c.since.IsZero():
		return rolloutTimer{digest: digest, since: now}
	}
	return c
}
