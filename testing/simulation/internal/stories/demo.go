package stories

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// deploymentsAreSilent keeps the cluster from writing how Deployments are, because a scenario does.
var deploymentsAreSilent = fault.Fault{
	Kind: fault.Refuses, Actor: "cluster", Verb: fault.Update,
	Path: "/apis/apps/v1/namespaces/*/deployments/*/status", Times: math.MaxInt32,
}

// PlayDemo plays the scenario of a demo, with an operator that has the rights of its roles and no others. The scenario
// starts the operator itself, and says how Deployments are. The webhooks are left out, for the demo serves them on a
// port.
func PlayDemo(t *testing.T, open func(context.Context, demo.Options) (*demo.Scenario, error), users ...string) {
	t.Helper()
	options := simulation.Options{
		// Roles count.
		Rules:               []rbacv1.PolicyRule{},
		ChangingDefinitions: true,
		Plan:                plan.Plan{Faults: []fault.Fault{deploymentsAreSilent}},
	}
	simulation.Run(t, options, func(w *simulation.World) {
		var printed strings.Builder
		options := demo.Options{Admin: w.Config("admin"), Users: map[string]*rest.Config{}, Out: &printed}
		for _, name := range users {
			config := w.Config(name)
			config.Impersonate.UserName = name
			options.Users[name] = config
		}
		scenario, err := open(w.Context(), options)
		if err != nil {
			w.Fatal(err)
		}
		if err := errors.Join(scenario.Play(w.Context()), scenario.Close(w.Context())); err != nil {
			w.Errorf("%v\n%s", err, printed.String())
		}
	})
}
