package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reason is the one that the status has.
func (j *componentJob[T]) reason() string {
	if condition := meta.FindStatusCondition(j.status.Conditions, j.Condition); condition != nil {
		return condition.Reason
	}
	return ""
}

// settle sets the status, and changes nothing of it if nothing is new.
func (j *componentJob[T]) settle(ctx context.Context) componentVerdict {
	status, generation := j.status, j.resource.GetGeneration()
	clock := componentClock{digest: status.ProcessingDigest}
	if status.ProcessingSince != nil {
		clock.since = status.ProcessingSince.Time
	}
	if !j.situation.suspended {
		digest := j.digest
		if digest == "" {
			// The request did not come so far as to find out.
			digest = clock.digest
		}
		clock = clock.tick(digest, j.situation.done && j.situation.err == nil, j.situation.deleting, j.now)
		j.situation.overdue = !clock.since.IsZero() && j.configuration.Timeout > 0 && j.now.Sub(clock.since) >= j.configuration.Timeout
	}
	verdict := judgeComponent(j.situation)
	verdict.message = limited(singleLine(verdict.message)+j.remarks(), componentMessageLimit)

	status.ProcessingDigest = clock.digest
	status.ProcessingSince = keepTime(status.ProcessingSince, clock.since)
	status.State = verdict.state
	if verdict.state == apis.ComponentReady {
		if status.AppliedGeneration != generation || j.before.State != apis.ComponentReady || j.report.Changed() {
			status.AppliedGeneration = generation
			status.LastAppliedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
		}
	}
	if j.situation.err == nil {
		status.ObservedGeneration = generation
	}
	// The slice may be shared with what the status was before.
	status.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               j.Condition,
		Status:             conditionStatus(verdict.state),
		ObservedGeneration: generation,
		Reason:             verdict.reason,
		Message:            verdict.message,
		LastTransitionTime: metav1.Time{Time: j.now.Truncate(time.Second)},
	})
	if j.differs() {
		status.LastObservedAt = &metav1.Time{Time: j.now.Truncate(time.Second)}
	}
	if j.Reflect != nil {
		j.Reflect(ctx, j.resource, status)
	}
	return verdict
}

// differs tells whether the status is another one than before, but for LastObservedAt.
func (j *componentJob[T]) differs() bool {
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

// remarks tells of types that cannot be watched.
func (j *componentJob[T]) remarks() string {
	if j.report == nil || len(j.report.Polled) == 0 {
		return ""
	}
	remarks := make([]string, 0, len(j.report.Polled))
	for kind, reason := range j.report.Polled {
		remarks = append(remarks, fmt.Sprintf("%s %s, so it is polled", kind.Kind, reason))
	}
	slices.Sort(remarks)
	return ". " + limited(strings.Join(remarks, "; "), componentRemarkLimit)
}

func singleLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// componentEvent is an event, as far as it tells one from another.
type componentEvent struct {
	eventType, reason, message string
}

// componentEventWindow is how long an event is not recorded again: that of section 2.7 of the specification of the component engine.
const componentEventWindow = 5 * time.Minute

// announce records what happened as events on the resource: of the component if its reason changed, or what it says of an error;
// and of its objects, one event for each sort of operation, whatever the number of objects.
func (j *componentJob[T]) announce(_ context.Context, reasonBefore string, verdict componentVerdict) {
	eventType := corev1.EventTypeNormal
	if verdict.state == apis.ComponentError {
		eventType = corev1.EventTypeWarning
	}
	if j.report != nil {
		for _, event := range operationEvents(j.report.Results) {
			j.record(event)
		}
	}
	if verdict.reason != reasonBefore || eventType == corev1.EventTypeWarning && j.situation.err != nil {
		j.record(componentEvent{eventType, verdict.reason, verdict.message})
	}
}

func (j *componentJob[T]) record(event componentEvent) {
	maps.DeleteFunc(j.memory.recorded, func(_ componentEvent, at time.Time) bool { return j.now.Sub(at) >= componentEventWindow })
	if _, known := j.memory.recorded[event]; known {
		return
	}
	if j.memory.recorded == nil {
		j.memory.recorded = map[componentEvent]time.Time{}
	}
	j.memory.recorded[event] = j.now
	j.config.record(j.resource, event.eventType, event.reason, "%s", event.message)
}

// operationEvents sums up operations: one event for each reason, in the order of the reasons below.
func operationEvents(results []execute.Result) []componentEvent {
	objects := map[string][]string{}
	for i := range results {
		if reason := operationReason(&results[i]); reason != "" {
			objects[reason] = append(objects[reason], results[i].Operation.Key.String())
		}
	}
	var events []componentEvent
	for _, reason := range []string{"Created", "CreateError", "Updated", "UpdateError", "Deleted", "DeleteError"} {
		if names := objects[reason]; len(names) > 0 {
			eventType := corev1.EventTypeNormal
			if strings.HasSuffix(reason, "Error") {
				eventType = corev1.EventTypeWarning
			}
			events = append(events, componentEvent{eventType, reason, operationVerbs[reason] + " " + someOf(names)})
		}
	}
	return events
}

var operationVerbs = map[string]string{
	"Created": "Created", "CreateError": "Unable to create",
	"Updated": "Updated", "UpdateError": "Unable to update",
	"Deleted": "Deleted", "DeleteError": "Unable to delete",
}

func operationReason(result *execute.Result) string {
	failed := result.Err != nil
	switch result.Operation.Action {
	case plan.ActionCreate:
		var wait *execute.WaitError
		if result.Object != nil && failed || errors.As(result.Err, &wait) {
			return ""
		}
		return eventReason("Create", "Created", failed)
	case plan.ActionAdopt, plan.ActionApply, plan.ActionReplace, plan.ActionOrphan:
		if result.Unchanged && !failed {
			return ""
		}
		return eventReason("Update", "Updated", failed)
	case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate:
		return eventReason("Delete", "Deleted", failed)
	case plan.ActionDeleteType:
		if !failed && result.Use.State != plan.ForeignNone {
			return ""
		}
		return eventReason("Delete", "Deleted", failed)
	}
	return ""
}

func eventReason(verb, done string, failed bool) string {
	if failed {
		return verb + "Error"
	}
	return done
}

// someOf names some objects, and says how many more there are.
func someOf(names []string) string {
	const shown = 5
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
