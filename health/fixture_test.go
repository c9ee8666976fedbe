package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"

	"github.com/google/go-cmp/cmp"
)

type kindTests map[string]struct {
	// manifest is what follows apiVersion and kind.
	manifest string
	// want is an [apis.Health], or [found] if the readiness is not what follows from the health.
	want any
}

// found is what the functions find.
type found struct {
	health    apis.Health
	readiness health.Readiness
}

// but returns what is found if the readiness does not follow from the health.
func but(h apis.Health, status apis.ObjectStatus, message string) found {
	return found{h, health.Readiness{Status: status, Message: message}}
}

// passes returns what is found if no wave of a component waits.
func passes(h apis.Health) found { return but(h, apis.ObjectCurrent, "") }

// volatile returns what is found if the wait is for an object that may be deployed later.
func volatile(h apis.Health) found {
	return found{h, health.Readiness{Status: apis.ObjectInProgress, Message: h.Message, Volatile: true}}
}

// follows returns what is found if the readiness follows from the health.
func follows(h apis.Health) found {
	switch {
	case health.Healthy(h.State):
		return passes(h)
	case health.Failing(h.State):
		return but(h, apis.ObjectFailed, h.Message)
	case h.State == apis.StateUnknown:
		return but(h, apis.ObjectUnknown, h.Message)
	case h.Reason == health.ReasonTerminating:
		return but(h, apis.ObjectTerminating, h.Message)
	}
	return but(h, apis.ObjectInProgress, h.Message)
}

// run looks at each object as it is unstructured, and if its kind is built-in, also as it is typed, without its kind.
func (tests kindTests) run(t *testing.T, apiVersion, kind string) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want, ok := tc.want.(found)
			if !ok {
				want = follows(tc.want.(apis.Health))
			}
			expectHealth(t, apiVersion, kind, tc.manifest, health.Of, want.health)
			object := parse(t, "apiVersion: "+apiVersion+"\nkind: "+kind+"\n"+tc.manifest)
			before := object.DeepCopy()
			if diff := cmp.Diff(want.readiness, health.ReadinessOf(object)); diff != "" {
				t.Errorf("the readiness (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object was changed (-before +after), want it unchanged:\n%s", diff)
			}
		})
	}
}

func is(state, grade apis.State, reason, message string) apis.Health {
	return apis.Health{State: state, Grade: grade, Reason: reason, Message: message}
}

func blames(h apis.Health, attributes map[string]string) apis.Health {
	h.Attributes = attributes
	return h
}

const (
	creating = apis.StateCreating
	updating = apis.StateUpdating
	scaling  = apis.StateScaling
	failing  = apis.StateFailing
	degraded = apis.StateDegraded
	down     = apis.StateDown
	ongoing  = apis.ObjectInProgress
)

var (
	healthy     = apis.Health{State: apis.StateHealthy}
	operational = apis.Health{State: apis.StateOperational}
	completed   = apis.Health{State: apis.StateCompleted}
)
