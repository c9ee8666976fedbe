package components

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
)

// event is what tells one event from another.
type event struct {
	eventType, reason, message string
}

// eventWindow is how long the same event is not recorded again.
const eventWindow = 5 * time.Minute

// recordEvents records what happened as events on the resource: one for the component if its reason changed or an error
// is left, and one for each sort of operation on its objects, whatever the number of objects.
func (j *job[T]) recordEvents(ctx context.Context, reasonBefore string, c condition) {
	eventType := corev1.EventTypeNormal
	if c.state == apis.ComponentError {
		eventType = corev1.EventTypeWarning
	}
	if j.report != nil {
		for _, e := range operationEvents(j.report.Results) {
			j.recordEvent(ctx, e)
		}
	}
	if c.reason != reasonBefore || eventType == corev1.EventTypeWarning && j.facts.err != nil {
		j.recordEvent(ctx, event{eventType, c.reason, c.message})
	}
}

func (j *job[T]) recordEvent(ctx context.Context, e event) {
	maps.DeleteFunc(j.state.recorded, func(_ event, at time.Time) bool { return j.now.Sub(at) >= eventWindow })
	if _, known := j.state.recorded[e]; known {
		return
	}
	if j.state.recorded == nil {
		j.state.recorded = map[event]time.Time{}
	}
	j.state.recorded[e] = j.now
	reconcilers.RecordEvent(ctx, j.resource, e.eventType, e.reason, "%s", e.message)
}

// operationEvents makes one event for each reason, in the order of the reasons below.
func operationEvents(results []execute.Result) []event {
	objects := map[string][]string{}
	for i := range results {
		if reason := operationReason(&results[i]); reason != "" {
			objects[reason] = append(objects[reason], results[i].Operation.Key.String())
		}
	}
	var events []event
	for _, reason := range []string{"Created", "CreateError", "Updated", "UpdateError", "Deleted", "DeleteError"} {
		if names := objects[reason]; len(names) > 0 {
			eventType := corev1.EventTypeNormal
			if strings.HasSuffix(reason, "Error") {
				eventType = corev1.EventTypeWarning
			}
			events = append(events, event{eventType, reason, operationVerbs[reason] + " " + message.List(names, 5)})
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
