// Package health says how an object is, by rules for its kind: what its status says, and what its pods say. It also
// suspends objects, by [Suspensions].
//
// It looks at nothing but what it is given. So it cannot know what was written last, and tells a roll-out from the
// first one by the generation of the object.
package health

import (
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/content"
	"github.com/espalier-dev/espalier/internal/message"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons that are not those of a condition, a phase, or a container.
const (
	// ReasonTerminating means that the object is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonPaused means that the roll-out of a Deployment is paused and not finished.
	ReasonPaused = "DeploymentPaused"
	// ReasonSuspended means that a Job is suspended.
	ReasonSuspended = "JobSuspended"
)

// Healthy reports whether nothing is to be done for an object in that state, and nothing to be waited for.
func Healthy(state apis.State) bool {
	switch state {
	case apis.StateHealthy, apis.StateOperational, apis.StateCompleted:
		return true
	}
	return false
}

// Failing reports whether an object in that state does not become healthy by itself.
func Failing(state apis.State) bool {
	switch state {
	case apis.StateFailing, apis.StateOperationFailing, apis.StateTaskFailing:
		return true
	}
	return false
}

// Of says how the object is. It looks at the object only, does not change it, and never fails. The object has its kind,
// or is of a Go type of a built-in kind. Otherwise the rules for all kinds apply, as with [OfKind] and an empty kind.
//
// An object that is being deleted is not healthy. An object of a kind without a rule is as its status says by the
// conventions that kstatus knows.
func Of(object client.Object) apis.Health {
	return OfKind(content.KindOf(object), object)
}

// OfKind says how an object of the kind is, see [Of]. It is for typed objects that do not say their kind.
func OfKind(kind schema.GroupVersionKind, object client.Object) apis.Health {
	rule := rules[kind.GroupKind()]
	healthy := apis.Health{State: words[rule.class].healthy}
	if rule.static && !content.Missing(object) && object.GetDeletionTimestamp() == nil {
		return healthy
	}
	u, err := content.Of(kind, object)
	if err != nil {
		return apis.Health{State: apis.StateUnknown, Grade: apis.StateDegraded, Message: message.Stable(err.Error())}
	}
	s := newSubject(u)
	return s.health(rule.class, s.verdict())
}

// health returns the health that a verdict means.
func (s *subject) health(class class, v verdict) apis.Health {
	if v.status == apis.ObjectCurrent {
		return apis.Health{State: words[class].healthy}
	}
	return apis.Health{
		State:      s.state(class, v.status),
		Grade:      s.grade(class, v.status),
		Reason:     v.reason,
		Message:    message.Stable(v.message),
		Attributes: v.attributes,
	}
}

// explaining are the conditions that have the reason why an object is not ready, the most important ones first.
var explaining = []struct{ name, status string }{
	{"Reconciling", "True"}, {"Stalled", "True"},
	{"Failed", "True"}, {"FailureTarget", "True"}, {"ReplicaFailure", "True"},
	{"NamesAccepted", "False"}, {"Established", "False"},
	{"Progressing", "False"}, {"Available", "False"}, {"Ready", "False"}, {"Ready", "Unknown"},
}

// reason returns the reason of the most important condition that says why the object is not ready. Conditions of an
// earlier generation say nothing.
func (s *subject) reason() string {
	if s.stale() {
		return ""
	}
	for _, e := range explaining {
		if c, ok := s.condition(e.name); ok && c.Status == e.status && c.Reason != "" {
			return c.Reason
		}
	}
	return ""
}

// stale reports whether the status is known to be about an earlier generation.
func (s *subject) stale() bool {
	return content.Field(s.object, "status", "observedGeneration") != nil && !content.Observed(s.object)
}

// phase returns the phase of the status.
func (s *subject) phase() string { return s.text("status", "phase") }

// first reports whether the object was not changed since it was created, as far as is known.
func (s *subject) first() bool { return s.number(0, "metadata", "generation") <= 1 }

// state returns the state of an object that is not healthy.
func (s *subject) state(class class, status apis.ObjectStatus) apis.State {
	switch {
	case status == apis.ObjectUnknown:
		return apis.StateUnknown
	case status == apis.ObjectFailed:
		return words[class].failing
	case class == operational:
		return apis.StateOperationPending
	case class == completable && s.number(0, "status", "active") > 0:
		return apis.StateTaskRunning
	case class == completable:
		return apis.StateTaskPending
	case status == apis.ObjectTerminating:
		return apis.StateUpdating
	case class == alive && s.replicas().onlyScaled(s):
		return apis.StateScaling
	case s.first():
		return apis.StateCreating
	}
	return apis.StateUpdating
}

// grade returns what it means that an object is not healthy.
func (s *subject) grade(class class, status apis.ObjectStatus) apis.State {
	down := status == apis.ObjectFailed
	switch class {
	case alive:
		replicas := s.replicas()
		down = replicas.desired > 0 && replicas.ready == 0
	case pod:
		down = s.phase() != "Running"
	case completable:
		if status == apis.ObjectInProgress || status == apis.ObjectTerminating {
			return ""
		}
	}
	if down {
		return apis.StateDown
	}
	return apis.StateDegraded
}
