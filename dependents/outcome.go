package dependents

import (
	"errors"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is what came of one dependent in a request.
type outcome struct {
	// health is how the object is. Its state is empty if the object does not count.
	health apis.Health
	// done reports whether the dependents after this one may run: the object is ready, is unchecked, or is not desired.
	done bool
	// runs reports whether a dependent that waits has an object that is to be suspended.
	runs bool
	// err is an error that is returned.
	err    error
	result reconcilers.Result
}

// blocked is the outcome of a dependent that waits.
func blocked(text string) outcome {
	return outcome{health: apis.Health{State: apis.StateBlocked, Message: message.Stable(text)}}
}

// isReady reports whether an object is as it should be.
func isReady(health apis.Health) bool {
	switch health.State {
	case "", apis.StateHealthy, apis.StateOperational, apis.StateCompleted:
		return true
	}
	return false
}

// waitsFor says what a dependent waits for: cells without a value, and dependents that are not done. It returns an
// empty text if there is nothing to wait for.
func waitsFor(p *plan, known values, done map[string]bool) string {
	var texts []string
	isSet := func(c AnyCell) bool { _, ok := known[c]; return ok }
	if missing := cellNames(slices.DeleteFunc(slices.Clone(p.needs), isSet)); len(missing) > 0 {
		texts = append(texts, "waiting for data "+quoted(missing))
	}
	isDone := func(name string) bool { return done[name] }
	if names := slices.DeleteFunc(slices.Clone(p.after), isDone); len(names) > 0 {
		texts = append(texts, "waiting for "+quoted(names))
	}
	return strings.Join(texts, ", ")
}

// named is an outcome with the name of its dependent.
type named struct {
	name string
	outcome
}

// conditionOf sums up outcomes: like the first error, else like the first object that is not ready.
func conditionOf(outcomes []named) metav1.Condition {
	condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"}
	for _, o := range outcomes {
		switch {
		case o.err != nil:
			text := message.Stable(o.name + ": " + o.err.Error())
			return metav1.Condition{
				Status: metav1.ConditionFalse, Reason: string(apis.StateError), Message: text,
			}
		case condition.Status == metav1.ConditionTrue && !isReady(o.health):
			condition.Status, condition.Reason = metav1.ConditionFalse, string(o.health.State)
			condition.Message = message.Stable(o.name + ": " + o.health.Message)
		}
	}
	return condition
}

// join joins the errors of outcomes. If only some of them are quiet, these are dropped, because a quiet error would
// silence the others.
func join(outcomes []named) error {
	var errs []error
	for _, o := range outcomes {
		if o.err != nil {
			errs = append(errs, o.err)
		}
	}
	isQuiet := func(err error) bool { return errors.Is(err, reconcilers.ErrQuiet) }
	isLoud := func(err error) bool { return !isQuiet(err) }
	if slices.ContainsFunc(errs, isLoud) {
		errs = slices.DeleteFunc(errs, isQuiet)
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
