package reconcilers

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/apis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the condition of a component, and of the events about it.
const (
	ComponentReasonFirstSeen          = "FirstSeen"
	ComponentReasonRetrying           = "Retrying"
	ComponentReasonRestarting         = "Restarting"
	ComponentReasonProcessing         = "Processing"
	ComponentReasonReady              = "Ready"
	ComponentReasonError              = "Error"
	ComponentReasonTimeout            = "Timeout"
	ComponentReasonSuspended          = "Suspended"
	ComponentReasonDeletionRetrying   = "DeletionRetrying"
	ComponentReasonDeletionBlocked    = "DeletionBlocked"
	ComponentReasonDeletionProcessing = "DeletionProcessing"
)

// componentSituation is what a request found out about a component.
type componentSituation struct {
	deleting, suspended bool
	// recorded: objects were recorded, and are written once that is durable.
	recorded bool
	// first: nothing was ever rolled out. changed: what is rolled out differs from what was before.
	first, changed bool
	// done: there is nothing left to do and to wait for.
	done bool
	// blocked: others use a type that would have to go.
	blocked bool
	// overdue: the roll-out takes longer than the timeout.
	overdue bool
	// retriable: err says when to try again.
	retriable bool
	// progress says what is waited for.
	progress string
	err      error
}

// componentVerdict is what the status says of a situation.
type componentVerdict struct {
	state   apis.ComponentState
	reason  string
	message string
}

// judgeComponent decides what the status says. The table is that of section 3.4 of the specification of the component engine.
func judgeComponent(s componentSituation) componentVerdict {
	switch {
	case s.suspended && !s.deleting:
		return componentVerdict{apis.ComponentPending, ComponentReasonSuspended, "Reconciliation is suspended"}
	case s.err != nil:
		return judgeError(s)
	case s.deleting && s.blocked:
		return componentVerdict{apis.ComponentDeleting, ComponentReasonDeletionBlocked, "Deletion blocked: " + s.progress}
	case s.deleting:
		return componentVerdict{apis.ComponentDeleting, ComponentReasonDeletionProcessing, orElse(capitalised(s.progress), "Waiting for the objects to go")}
	case s.done:
		return componentVerdict{apis.ComponentReady, ComponentReasonReady, "All objects are as desired, and ready"}
	case s.overdue:
		return componentVerdict{apis.ComponentError, ComponentReasonTimeout, "Timed out: " + orElse(s.progress, "the objects are not ready")}
	case s.recorded && s.first:
		return componentVerdict{apis.ComponentPending, ComponentReasonFirstSeen, "The objects are recorded"}
	case s.recorded && s.changed:
		return componentVerdict{apis.ComponentProcessing, ComponentReasonRestarting, "The objects have changed"}
	}
	return componentVerdict{apis.ComponentProcessing, ComponentReasonProcessing, orElse(capitalised(s.progress), "Waiting for the objects")}
}

func judgeError(s componentSituation) componentVerdict {
	message := limited(capitalised(s.err.Error()), componentMessageLimit)
	switch {
	case s.retriable && s.deleting:
		return componentVerdict{apis.ComponentDeletionPending, ComponentReasonDeletionRetrying, message}
	case s.retriable && s.overdue:
		return componentVerdict{apis.ComponentPending, ComponentReasonTimeout, message}
	case s.retriable:
		return componentVerdict{apis.ComponentPending, ComponentReasonRetrying, message}
	case s.overdue && !s.deleting:
		return componentVerdict{apis.ComponentError, ComponentReasonTimeout, message}
	}
	return componentVerdict{apis.ComponentError, ComponentReasonError, message}
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

// componentMessageLimit bounds what a condition says, in bytes.
const componentMessageLimit = 1024

// limited cuts text to a number of bytes, at the boundary of a character.
func limited(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}

func capitalised(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

func orElse(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}

// componentClock is the part of the status that tells since when a roll-out has been under way.
type componentClock struct {
	digest string
	since  time.Time
}

// tick returns the clock after a request. A roll-out begins when the component digest changes, and when what was ready is not any more;
// it ends when the component is ready. The time of errors counts as well.
func (c componentClock) tick(digest string, ready, deleting bool, now time.Time) componentClock {
	switch {
	case deleting:
		return componentClock{}
	case ready:
		return componentClock{digest: digest}
	case c.digest != digest || c.since.IsZero():
		return componentClock{digest: digest, since: now}
	}
	return c
}

// componentBackoff is how long to wait for what nobody tells us about, after so many requests that found nothing new: 50 to 800 ms,
// then 1 s, then 2 s, then longest.
func componentBackoff(tries int, longest time.Duration) time.Duration {
	switch {
	case tries < 5:
		return 50 * time.Millisecond << max(tries, 0)
	case tries < 20:
		return time.Second
	case tries < 50:
		return 2 * time.Second
	}
	return longest
}

// jittered adds 1 to 5 percent to a delay, so that components that were made together do not come back together. The same seed gives
// the same delay.
func jittered(delay time.Duration, seed string) time.Duration {
	if delay <= 0 {
		return delay
	}
	var sum uint32 = 2166136261
	for i := range len(seed) {
		sum = (sum ^ uint32(seed[i])) * 16777619
	}
	return delay + delay*time.Duration(1+sum%5)/100
}
