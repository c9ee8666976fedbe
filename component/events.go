package component

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/execute"
	"github.com/espalier-dev/espalier/internal/component/manifest"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
)

// event has the fields by which two events are the same.
type event struct {
	eventType, reason, message string
}

// eventWindow is how long the same event is not recorded again.
const eventWindow = 5 * time.Minute

// recordEvents records what happened as events on the resource: one for the component if its reason changed or an error
// is left, and one for each wave and kind of operation on its objects. The number of events does not depend on the
// number of objects.
func (r *request[T]) recordEvents(ctx context.Context, reasonBefore string, c condition) {
	eventType := corev1.EventTypeNormal
	if c.state == apis.ComponentError || c.reason == ReasonAbandoned {
		eventType = corev1.EventTypeWarning
	}
	if r.report != nil {
		for _, e := range operationEvents(r.report.Results) {
			r.recordEvent(ctx, e)
		}
	}
	if c.reason != reasonBefore || eventType == corev1.EventTypeWarning && r.facts.err != nil {
		r.recordEvent(ctx, event{eventType, c.reason, c.message})
	}
}

func (r *request[T]) recordEvent(ctx context.Context, e event) {
	maps.DeleteFunc(r.state.recorded, func(_ event, at time.Time) bool { return r.now.Sub(at) >= eventWindow })
	if _, known := r.state.recorded[e]; known {
		return
	}
	if r.state.recorded == nil {
		r.state.recorded = map[event]time.Time{}
	}
	r.state.recorded[e] = r.now
	reconcilers.RecordEvent(ctx, r.resource, e.eventType, e.reason, "%s", e.message)
}

// operationEvents makes one event for each wave, verb and outcome, in the order of the first operation of each. What
// failed comes last.
func operationEvents(results []execute.Result) []event {
	type group struct {
		wave, verb string
		failed     bool
	}
	var done, failed []group
	names := map[group][]string{}
	for i := range results {
		g := group{results[i].Wave, eventVerb(&results[i]), results[i].Err != nil}
		if g.verb == "" {
			continue
		}
		switch {
		case names[g] != nil:
		case g.failed:
			failed = append(failed, g)
		default:
			done = append(done, g)
		}
		names[g] = append(names[g], results[i].Operation.Key.String())
	}
	events := make([]event, 0, len(done)+len(failed))
	for _, g := range slices.Concat(done, failed) {
		if g.failed {
			text := "Unable to " + strings.ToLower(g.verb) + " " + message.List(names[g], maxNames)
			events = append(events, event{corev1.EventTypeWarning, g.verb + "Error", text})
			continue
		}
		past := strings.TrimSuffix(g.verb, "e") + "ed"
		events = append(events, event{corev1.EventTypeNormal, past, past + " " + objectsOf(names[g], g.wave)})
	}
	return events
}

// objectsOf says how many objects of a wave there are, and names the first of them.
func objectsOf(names []string, wave string) string {
	if len(names) == 1 {
		return names[0]
	}
	if wave != "" {
		wave = " in " + wave
	}
	return fmt.Sprintf("%d objects%s: %s", len(names), wave, message.List(names, maxNames))
}

// tellResults logs a line for each object that was changed, and tells observers of each write. What failed is in the
// error of the request, so it is not logged.
func tellResults(ctx context.Context, results []execute.Result) {
	log, observed := logr.FromContextOrDiscard(ctx), reconcilers.IsObserved(ctx)
	for i := range results {
		result := &results[i]
		if eventVerb(result) == "" {
			continue
		}
		o := &result.Operation
		if result.Err == nil {
			log.Info(pastOf(o.Action), "object", o.Key.String(), "reason", o.Reason)
		}
		if observed {
			reconcilers.Note(ctx, reconcilers.Write{
				Object: refOf(o.Key), Verb: requestVerb(o.Action), Reason: o.Reason, Err: result.Err,
			})
		}
	}
}

// tellLeft says once which objects are left in the cluster although they would have had to go.
func (r *request[T]) tellLeft(ctx context.Context, left []plan.Obstacle) {
	names := make([]string, 0, len(left))
	for _, object := range left {
		names = append(names, fmt.Sprintf("%s (%s)", object.Key, object.Message))
		reconcilers.Note(ctx, reconcilers.Held{Object: refOf(object.Key), Kind: reconcilers.HeldLeft})
	}
	logr.FromContextOrDiscard(ctx).Info("left objects that are not the component's any more", "objects", len(left),
		"first", message.List(names, maxLogged))
	r.recordEvent(ctx, event{corev1.EventTypeWarning, "Left", "Not deleted: " + message.List(names, maxNames)})
}

// logAuxiliary logs why auxiliary objects could not be written, once for each error. No error is returned for these.
func (s *resourceState) logAuxiliary(ctx context.Context, objects []manifest.Object, report *engine.Report) {
	if len(report.Failures) == 0 && len(s.failures) == 0 {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	for i := range objects {
		key := objects[i].Desired.Key
		err := report.Failures[key]
		if err != nil && objects[i].Desired.Auxiliary && s.failures[key] != err.Error() {
			if s.failures == nil {
				s.failures = map[plan.Key]string{}
			}
			s.failures[key] = err.Error()
			log.Info("unable to write an auxiliary object", "object", key.String(), "reason", err.Error())
		}
	}
	for i := range report.Results {
		if report.Results[i].Err == nil {
			delete(s.failures, report.Results[i].Operation.Key)
		}
	}
}

// pastOf is the word for an operation that was carried out.
func pastOf(action plan.Action) string {
	switch action {
	case plan.ActionCreate:
		return "created"
	case plan.ActionAdopt:
		return "adopted"
	case plan.ActionRelabel:
		return "labelled"
	case plan.ActionApply:
		return "applied"
	case plan.ActionReplace:
		return "replaced"
	case plan.ActionOrphan:
		return "orphaned"
	}
	return "deleted"
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
