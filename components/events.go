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

// event has the fields by which two events are the same.
type event struct {
	eventType, reason, message string
}

// eventWindow is how long the same event is not recorded again.
const eventWindow = 5 * time.Minute

// recordEvents records what happened as events on the resource: one for the component if its reason changed or an error
// is left, and one for each kind of operation on its objects. The number of events does not depend on the number of
// objects.
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

// operationEvents makes one event for each verb and outcome.
func operationEvents(results []execute.Result) []event {
	done, failed := map[string][]string{}, map[string][]string{}
	for i := range results {
		verb, name := eventVerb(&results[i]), results[i].Operation.Key.String()
		if results[i].Err != nil {
			failed[verb] = append(failed[verb], name)
		} else {
			done[verb] = append(done[verb], name)
		}
	}
	var events []event
	for _, verb := range []string{"Create", "Adopt", "Update", "Delete"} {
		if names := done[verb]; len(names) > 0 {
			past := strings.TrimSuffix(verb, "e") + "ed"
			events = append(events, event{corev1.EventTypeNormal, past, past + " " + message.List(names, maxNames)})
		}
		if names := failed[verb]; len(names) > 0 {
			text := "Unable to " + strings.ToLower(verb) + " " + message.List(names, maxNames)
			events = append(events, event{corev1.EventTypeWarning, verb + "Error", text})
		}
	}
	return events
}

// maxNames is how many objects an event names.
const maxNames = 5

// eventVerb is the verb of the event about an operation, empty if there is none to record.
func eventVerb(result *execute.Result) string {
	failed := result.Err != nil
	switch result.Operation.Action {
	case plan.ActionCreate:
		var wait *execute.WaitError
		if result.Exists || errors.As(result.Err, &wait) {
			return ""
		}
		return "Create"
	case plan.ActionAdopt:
		return "Adopt"
	case plan.ActionRelabel, plan.ActionApply, plan.ActionReplace, plan.ActionOrphan:
		if result.Unchanged && !failed {
			return ""
		}
		return "Update"
	case plan.ActionDeleteType, plan.ActionDeleteNamespace:
		if result.Use.State != plan.ForeignNone && !failed {
			return ""
		}
		return "Delete"
	case plan.ActionDelete, plan.ActionPurge, plan.ActionRecreate:
		return "Delete"
	}
	return ""
}
