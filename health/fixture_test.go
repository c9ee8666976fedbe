package health_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
)

type kindTests map[string]struct {
	// manifest is what follows apiVersion and kind.
	manifest string
	want     apis.Health
}

// run looks at each object as it is unstructured, and if its kind is built-in, also as it is typed, without its kind.
func (tests kindTests) run(t *testing.T, apiVersion, kind string) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			expectHealth(t, apiVersion, kind, tc.manifest, health.Of, tc.want)
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
)

var (
	healthy     = apis.Health{State: apis.StateHealthy}
	operational = apis.Health{State: apis.StateOperational}
	completed   = apis.Health{State: apis.StateCompleted}
)
