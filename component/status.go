package component

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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
	ReasonContested          = "Contested"
	ReasonNondeterministic   = "NondeterministicGenerator"
	ReasonSuspended          = "Suspended"
	ReasonSuspending         = "Suspending"
	ReasonDisabled           = "Disabled"
	ReasonDeletionRetrying   = "DeletionRetrying"
	ReasonDeletionBlocked    = "DeletionBlocked"
	ReasonDeletionProcessing = "DeletionProcessing"
	ReasonUnreachable        = "ClusterUnreachable"
	ReasonAbandoned          = "Abandoned"
)

// facts are what a request found out about a component.
type facts struct {
	deleting, suspended bool
	// withdrawing is true if a supervisor withdraws the component, withdrawn if nothing of it is left then.
	withdrawing, withdrawn bool
	// resting is true if a supervisor suspends the objects.
	resting bool
	// recorded is true if objects were recorded. They are created once the records are durable.
	recorded bool
	// first is true if nothing was ever rolled out, changed if what is rolled out differs from before.
	first, changed bool
	// done is true if there is nothing left to do and to wait for.
	done bool
	// blocked is true if others use a type, or have objects in a namespace, that would be deleted.
	blocked bool
	// contested is true if another client keeps changing an object.
	contested bool
	// varies says what differs if the generator keeps returning other objects for the same input.
	varies string
	// overdue is true if the roll-out takes longer than the timeout.
	overdue bool
	// retriable is true if err says when to try again.
	retriable bool
	// unreachable is true if the cluster of the objects does not answer.
	unreachable bool
	// abandoning says which objects are given up with the next request.
	abandoning string
	// progress says what is waited for.
	progress string
	err      error
}

// leaving reports whether the objects are to be deleted.
func (s *facts) leaving() bool { return s.deleting || s.withdrawing }

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
	case s.abandoning != "":
		return condition{apis.ComponentDeletionPending, ReasonAbandoned, s.abandoning}
	case s.withdrawn:
		return condition{apis.ComponentPending, ReasonDisabled, "The component is disabled, and its objects are gone"}
	case s.leaving() && s.blocked:
		return condition{apis.ComponentDeleting, ReasonDeletionBlocked, "Deletion blocked: " + s.progress}
	case s.leaving():
		text := orElse(message.Capitalize(s.progress), "Waiting for the objects to go")
		return condition{apis.ComponentDeleting, ReasonDeletionProcessing, text}
	case s.varies != "":
		return condition{apis.ComponentError, ReasonNondeterministic, s.varies}
	case s.done && s.resting:
		return condition{apis.ComponentPending, ReasonSuspended, "All objects are suspended"}
	case s.done:
		return condition{apis.ComponentReady, ReasonReady, "All objects are as desired, and ready"}
	case s.contested:
		return condition{apis.ComponentError, ReasonContested, message.Capitalize(s.progress)}
	case s.overdue:
		text := "Timed out: " + orElse(s.progress, "the objects are not ready")
		return condition{apis.ComponentError, ReasonTimeout, text}
	case s.resting && !s.recorded:
		text := orElse(message.Capitalize(s.progress), "Waiting for the objects to be suspended")
		return condition{apis.ComponentProcessing, ReasonSuspending, text}
	case s.recorded && s.first:
		return condition{apis.ComponentPending, ReasonFirstSeen, "The objects are recorded"}
	case s.recorded && s.changed:
		return condition{apis.ComponentProcessing, ReasonRestarting, "The objects have changed"}
	}
	text := orElse(message.Capitalize(s.progress), "Waiting for the objects")
	return condition{apis.ComponentProcessing, ReasonProcessing, text}
}

func errorCondition(s facts) condition {
	text := clientAddress.ReplaceAllString(message.Capitalize(execute.Summary(s.err, maxMessage)), "$1 ")
	switch {
	case s.unreachable && s.leaving():
		return condition{apis.ComponentDeletionPending, ReasonUnreachable, text}
	case s.unreachable:
		return condition{apis.ComponentPending, ReasonUnreachable, text}
	case s.retriable && s.leaving():
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

// clientAddress is the end of a connection that failed here. A condition with its port would change each time.
var clientAddress = regexp.MustCompile(`\b(tcp|udp) \S+:\d+->`)

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

// reason is the reason of the condition in the status.
func (j *job[T]) reason() string {
	if condition := meta.FindStatusCondition(j.status.Conditions, j.Condition); condition != nil {
		return condition.Reason
	}
	return ""
}

// updateStatus sets the status, and changes nothing of it if nothing is new.
func (j *job[T]) updateStatus(ctx context.Context) condition {
	status, generation := j.status, j.resource.GetGeneration()
	timer := rolloutTimer{digest: status.ProcessingDigest}
	if status.ProcessingSince != nil {
		timer.since = status.ProcessingSince.Time
	}
	switch {
	case j.facts.suspended:
	case j.facts.resting && j.digest != "":
		// It begins anew when the objects are resumed.
		timer = rolloutTimer{digest: j.digest}
	case !j.facts.resting:
		// A request may end before the digest is known.
		digest := cmp.Or(j.digest, timer.digest)
		timer = timer.tick(digest, j.facts.done && j.facts.err == nil, j.facts.leaving(), j.now)
		timeout := j.configuration.Timeout
		j.facts.overdue = !timer.since.IsZero() && timeout > 0 && j.now.Sub(timer.since) >= timeout
	}
	c := conditionOf(j.facts)
	c.message = message.Truncate(singleLine(c.message)+j.remarks(), maxMessage)

	status.ProcessingDigest = timer.digest
	status.ProcessingSince = keepTime(status.ProcessingSince, timer.since)
	status.State = c.state
	if j.facts.withdrawn && j.facts.err == nil {
		j.forgetRollouts()
	}
	if c.state == apis.ComponentReady {
		if status.AppliedGeneration != generation || j.before.State != apis.ComponentReady || j.report.Changed() {
			status.AppliedGeneration = generation
			status.LastAppliedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
		}
	}
	if j.facts.err == nil {
		status.ObservedGeneration = generation
	}
	// The slice may be shared with what the status was before.
	status.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               j.Condition,
		Status:             conditionStatus(c.state),
		ObservedGeneration: generation,
		Reason:             c.reason,
		Message:            c.message,
		LastTransitionTime: metav1.Time{Time: j.now.Truncate(time.Second)},
	})
	if j.differs() {
		status.LastObservedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
	}
	if j.Reflect != nil {
		j.Reflect(ctx, j.resource, status)
	}
	return c
}

// differs reports whether the status differs from before in more than LastObservedAt.
func (j *job[T]) differs() bool {
	before, after := j.before, *j.status
	if !inventory.Equal(before.Inventory, after.Inventory) {
		return true
	}
	before.Inventory, after.Inventory = nil, nil
	before.LastObservedAt, after.LastObservedAt = nil, nil
	return !equality.Semantic.DeepEqual(before, after)
}

// keepTime returns known if it means the same second as t, so that nothing changes.
func keepTime(known *metav1.Time, t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Truncate(time.Second)
	if known != nil && known.Time.Equal(t) {
		return known
	}
	return &metav1.Time{Time: t}
}

// remarks names the types that cannot be watched.
func (j *job[T]) remarks() string {
	if j.report == nil || len(j.report.Polled) == 0 {
		return ""
	}
	remarks := make([]string, 0, len(j.report.Polled))
	for kind, reason := range j.report.Polled {
		remarks = append(remarks, fmt.Sprintf("%s %s, so it is polled", kind.Kind, reason))
	}
	slices.Sort(remarks)
	return ". " + message.Truncate(strings.Join(remarks, "; "), maxRemarks)
}

func singleLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
