// Package scenario shows what the operator that delivers software does, step by step, on real clusters, and checks it.
// The steps are data, so that a test can play the same scenario under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/config"
	"github.com/espalier-dev/espalier/examples/platform/delivery/controller"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "delivery-operator"

// scenario is the clusters, the operator once it runs, and what the steps know of them.
type scenario struct {
	demo.Scenario
	// remote is the second cluster, as its administrator sees it. Nil if there is none.
	remote *demo.Fixture
	trees  string
	// renderings counts the calls of the generators.
	renderings atomic.Int64
}

// Demo is the demo of the operator that delivers software. Next to an existing cluster there is no second one, and the
// steps of the agent are left out.
var Demo = demo.Demo{
	Title:  "An operator that delivers a chart and a kustomization",
	Users:  []string{OperatorUser},
	Second: true,
	Open:   Open,
}

// Open installs the definitions, the roles of the operator, and the namespace that it delivers to. It is an error if
// one of these objects exists, or the definition that the chart brings.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	s := &scenario{Scenario: demo.Scenario{Options: options}}
	if options.Second != nil {
		admin, err := client.New(options.Second.Config(), client.Options{Scheme: scheme})
		if err != nil {
			return nil, fmt.Errorf("unable to connect to the second cluster: %w", err)
		}
		s.remote = &demo.Fixture{Client: admin}
	}
	if err := s.Open(ctx, scheme, s.install); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

func (s *scenario) install(ctx context.Context) error {
	objects := []client.Object{demo.Named[corev1.Namespace]("", namespace)}
	if s.remote != nil {
		secret, err := s.kubeconfig()
		if err != nil {
			return err
		}
		objects = append(objects, secret)
	}
	return s.Install(ctx, demo.Installation{
		User:       OperatorUser,
		Config:     config.Files,
		Objects:    objects,
		Brings:     []client.Object{probeType},
		OwnerLabel: controller.MonitorPrefix + "/" + generator.LabelOwnerID,
	})
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	mgr, err := s.NewManager(OperatorUser)
	if err != nil {
		return err
	}
	chart, err := controller.Chart()
	if err != nil {
		return err
	}
	kustomization, err := controller.Kustomization()
	if err != nil {
		return err
	}
	const period = 10 * time.Hour
	monitors := controller.NewMonitor(
		reconcilers.NewConfig(mgr, &v1alpha1.Monitor{}, period), counted{chart, &s.renderings})
	agents := controller.NewAgent(
		reconcilers.NewConfig(mgr, &v1alpha1.Agent{}, period), counted{kustomization, &s.renderings})
	monitors.AfterReconcile, agents.AfterReconcile = s.Operator.Count, s.Operator.Count
	s.trees = monitors.Describe().String() + agents.Describe().String()
	if err := errors.Join(monitors.SetupWithManager(ctx, mgr), agents.SetupWithManager(ctx, mgr)); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}

// counted is a generator whose calls are counted. It says of its inputs what the generator does.
type counted struct {
	controller.Generator
	calls *atomic.Int64
}

// Generate counts, and calls the generator.
func (c counted) Generate(
	ctx context.Context, namespace, name string, parameters generator.Unstructurable,
) ([]client.Object, error) {
	c.calls.Add(1)
	return c.Generator.Generate(ctx, namespace, name, parameters)
}
