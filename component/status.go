package component

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/conditionlog"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

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
	ReasonPruneWaits         = "PruneWaits"
	ReasonEmptySet           = "EmptySet"
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
func (r *request[T]) reason() string {
	if condition := meta.FindStatusCondition(r.status.Conditions, r.Condition); condition != nil {
		return condition.Reason
	}
	return ""
}

// updateStatus sets the status, and changes nothing of it if nothing is new. It returns what it found out, with the
// reason in the status, and when to come back.
func (r *request[T]) updateStatus(ctx context.Context) (condition, *comeBack) {
	status, generation := r.status, r.resource.GetGeneration()
	timer := rolloutTimer{digest: status.ProcessingDigest}
	if status.ProcessingSince != nil {
		timer.since = status.ProcessingSince.Time
	}
	switch {
	case r.facts.suspended:
	case (r.facts.suspends || r.facts.empty != "") && r.digest != "":
		// It begins anew when the objects are resumed, and when there is something to roll out again.
		timer = rolloutTimer{digest: r.digest}
	case !r.facts.suspends:
		// A request may end before the digest is known.
		digest := cmp.Or(r.digest, timer.digest)
		timer = timer.tick(digest, r.facts.done && r.facts.err == nil, r.facts.leaving(), r.now)
		timeout := r.configuration.Timeout
		r.facts.overdue = !timer.since.IsZero() && timeout > 0 && r.now.Sub(timer.since) >= timeout
	}
	c, back := decide(states, &r.facts)
	remarks := r.remarks()
	c.message = message.Truncate(singleLine(c.message), maxMessage-len(remarks)) + remarks

	status.ProcessingDigest = timer.digest
	status.ProcessingSince = keepTime(status.ProcessingSince, timer.since)
	status.State = c.state
	if r.facts.withdrawn && r.facts.err == nil {
		r.forgetRollouts()
	}
	if c.state == apis.ComponentReady &&
		(status.AppliedGeneration != generation || r.before.State != apis.ComponentReady || r.report.Changed()) {
		status.AppliedGeneration = generation
		status.LastAppliedAt = &metav1.Time{Time: r.now.Truncate(time.Second)}
		r.endAllowance()
	}
	if r.facts.err == nil {
		status.ObservedGeneration = generation
	}
	conditionlog.Of(ctx).Set(r.Condition)
	// The slice may be shared with what the status was before.
	status.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               r.Condition,
		Status:             conditionStatus(c.state),
		ObservedGeneration: generation,
		Reason:             c.reason,
		Message:            c.message,
		LastTransitionTime: metav1.Time{Time: r.now.Truncate(time.Second)},
	})
	switch {
	case !r.differs():
	case r.holds(ctx):
		c.reason = r.keepStatus()
	default:
		status.LastObservedAt = &metav1.Time{Time: r.now.Truncate(time.Second)}
	}
	if r.Reflect != nil {
		r.Reflect(ctx, r.resource, status)
	}
	return c, back
}

// keepStatus leaves the status as it was, and returns the reason in it. The next request has to find out again what the
// status does not say.
func (r *request[T]) keepStatus() string {
	*r.status, r.state.taskInput = r.before, taskInput{}
	return r.reason()
}

// differs reports whether the status differs from before in more than LastObservedAt.
func (r *request[T]) differs() bool {
	before, after := r.before, *r.status
	if !inventory.Equal(before.Inventory, after.Inventory) {
		return true
	}
	before.Inventory, after.Inventory = nil, nil
	before.LastObservedAt, after.LastObservedAt = nil, nil
	return !equality.Semantic.DeepEqual(before, after)
}

// statusTexts is the key of the texts in the status of a component of a node.
type statusTexts struct{ node, item string }

// holds reports whether the status stays as it was for a while, because it differs only in texts, or in how ready
// objects are. Both may change with each event of an object. Texts that differ in numbers alone are shown once in a
// minute. The first changes of any other kind are shown at once, and later ones after a delay, of a minute at most.
func (r *request[T]) holds(ctx context.Context) bool {
	were, texts := withoutTexts(r.before, r.Condition)
	are, newest := withoutTexts(*r.status, r.Condition)
	textsAlone := equality.Semantic.DeepEqual(were, are)
	var shown *string
	switch {
	case textsAlone && withoutNumbers.Replace(texts) == withoutNumbers.Replace(newest):
		shown = &texts
	case textsAlone || equality.Semantic.DeepEqual(
		withoutReadiness(were, r.Condition), withoutReadiness(are, r.Condition)):
		if r.facts.heldUntil = r.state.holdUntil(r.now); !r.facts.heldUntil.IsZero() {
			return true
		}
	}
	key := statusTexts{reconcilers.RetrievePath(ctx), r.owner.Item}
	return reconcilers.ReportText(ctx, r.resource, key, shown, newest) != newest
}

var withoutNumbers = strings.NewReplacer(
	"0", "", "1", "", "2", "", "3", "", "4", "", "5", "", "6", "", "7", "", "8", "", "9", "")

// holdUntil returns when a change of the status may be shown. If that is now, it counts the change and returns zero.
func (s *resourceState) holdUntil(now time.Time) time.Time {
	if s.changes.Forgotten(now) {
		s.changes = plan.Repetition{}
	}
	due := s.changes.Due()
	if latest := s.changes.Last.Add(time.Minute); latest.Before(due) {
		due = latest
	}
	if now.Before(due) {
		return due
	}
	s.changes = s.changes.Again("", now, math.MaxInt)
	return time.Time{}
}

// withoutTexts returns a status without the texts in it, and the texts.
func withoutTexts(status apis.ComponentStatus, conditionType string) (apis.ComponentStatus, string) {
	var texts strings.Builder
	status.LastObservedAt = nil
	status.Inventory, status.Conditions = slices.Clone(status.Inventory), slices.Clone(status.Conditions)
	for i := range status.Inventory {
		texts.WriteString(status.Inventory[i].Message + "\n")
		status.Inventory[i].Message = ""
	}
	if condition := meta.FindStatusCondition(status.Conditions, conditionType); condition != nil {
		texts.WriteString(condition.Message)
		condition.Message = ""
	}
	return status, texts.String()
}

// withoutReadiness changes a status without texts, so that it does not say how ready objects are that were ready once,
// nor the component because of them.
func withoutReadiness(status apis.ComponentStatus, conditionType string) apis.ComponentStatus {
	condition := meta.FindStatusCondition(status.Conditions, conditionType)
	if condition == nil {
		return status
	}
	switch condition.Reason {
	case ReasonReady, ReasonProcessing, ReasonTimeout:
	default:
		return status
	}
	*condition = metav1.Condition{Type: conditionType, ObservedGeneration: condition.ObservedGeneration}
	status.State, status.ProcessingSince, status.LastAppliedAt = "", nil, nil
	for i := range status.Inventory {
		// The first time that an object becomes ready, its phase changes.
		status.Inventory[i].Status = ""
	}
	return status
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

// maxRemarks, in bytes, is how long a remark may be: one about types that cannot be watched, and one about an object
// that is not pruned yet.
const maxRemarks = 256

// remarks names an object that is not pruned yet, and the types that cannot be watched.
func (r *request[T]) remarks() string {
	kept := ""
	if r.facts.kept != "" {
		kept = ". " + message.Truncate(r.facts.kept, maxRemarks)
	}
	if r.report == nil || len(r.report.Polled) == 0 {
		return kept
	}
	remarks := make([]string, 0, len(r.report.Polled))
	for kind, reason := range r.report.Polled {
		remarks = append(remarks, fmt.Sprintf("%s %s, so it is polled", kind.Kind, reason))
	}
	slices.Sort(remarks)
	return kept + ". " + message.Truncate(strings.Join(remarks, "; "), maxRemarks)
}

func singleLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
