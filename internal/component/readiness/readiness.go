// Package readiness tells how ready an object is: by kstatus, by what its annotations say, and where kstatus is wrong, by rules
// of its own. It is pure: it looks at the object, and at nothing else.
//
// An object without a status counts as ready where no rule of its kind says otherwise, since many kinds never have one. So does a
// custom resource that its controller has not seen yet. That is what the hints of [component.StatusHint] are for, and
// [component.Settings].ReadyWhen.
package readiness

import (
	"fmt"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Result is how ready an object is.
type Result struct {
	Status apis.ObjectStatus
	// Message says why it is not Current, in stable words of limited length; empty if it is.
	Message string
	// Volatile: it waits for another object that may come in the same or a later wave, see plan.Observed.
	Volatile bool
}

// Of tells how ready object is, which it does not change. It never fails: a rule that cannot be evaluated makes the object
// not ready, and the message says so.
//
// In this order, the first that applies:
//
//   - It is being deleted: Terminating.
//   - Its generation has not been observed, or a condition Reconciling is True: InProgress.
//   - A condition Stalled is True: Failed.
//   - The rule of its kind, or else its condition Ready, says that it is not Current.
//   - A condition that a hint names is not True: InProgress.
//   - ReadyWhen is not true: InProgress; Failed if it is no valid expression.
//
// Otherwise it is Current. A status that has not the form that the rules expect makes it Unknown.
func Of(object *unstructured.Unstructured, settings component.Settings) Result {
	if object == nil || object.Object == nil {
		return unknown("there is no object to look at")
	}
	s := newSubject(object, settings.StatusHint)
	result := s.result()
	if result.Status == apis.ObjectCurrent {
		result = s.hinted(settings.StatusHint.Conditions)
	}
	if result.Status == apis.ObjectCurrent && settings.ReadyWhen != "" {
		result = readyWhen(settings.ReadyWhen, object)
	}
	result.Message = clean(result.Message)
	return result
}

// Validate tells whether Of can do what settings ask for: that ReadyWhen, if any, is a valid expression.
func Validate(settings component.Settings) error {
	if settings.ReadyWhen == "" {
		return nil
	}
	_, err := programs.get(settings.ReadyWhen)
	return err
}

// subject is an object with its hints filled in, and what most rules look at.
type subject struct {
	object     *unstructured.Unstructured
	kind       string
	conditions []condition
}

func newSubject(object *unstructured.Unstructured, hint component.StatusHint) *subject {
	object = withHints(object, hint)
	kind := object.GroupVersionKind()
	s := &subject{object: object, kind: kind.Kind, conditions: conditionsOf(object.Object)}
	if kind.Group != "" {
		s.kind = kind.Group + "/" + kind.Kind
	}
	return s
}

// result applies the rules, without hinted conditions and ReadyWhen.
func (s *subject) result() Result {
	if result, decided := s.general(); decided {
		return result
	}
	if s.kind == kindPod {
		return s.pod()
	}
	computed, err := status.Compute(s.object)
	if err != nil {
		return unknown(fmt.Sprintf("its status cannot be read: %v", err))
	}
	if result, decided := s.special(computed); decided {
		return result
	}
	if computed.Status == status.CurrentStatus {
		return current
	}
	return Result{Status: apis.ObjectStatus(computed.Status), Message: s.reason(computed)}
}

// hinted demands that conditions are True.
func (s *subject) hinted(conditions []string) Result {
	for _, name := range conditions {
		if c, ok := s.condition(name); !ok {
			return inProgress(fmt.Sprintf("has no condition %s yet", name))
		} else if c.status != "True" {
			return inProgress(c.String())
		}
	}
	return current
}

var current = Result{Status: apis.ObjectCurrent}

func inProgress(message string) Result {
	return Result{Status: apis.ObjectInProgress, Message: message}
}

func failed(message string) Result {
	return Result{Status: apis.ObjectFailed, Message: message}
}

func unknown(message string) Result {
	return Result{Status: apis.ObjectUnknown, Message: message}
}
