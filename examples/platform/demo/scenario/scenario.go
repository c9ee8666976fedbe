// Package scenario shows what the operator for platforms does, step by step, on a real cluster, and checks it. The
// steps are data, so that a test can play the same scenario under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/config"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "platform-operator"

// The platform of the scenario, and the namespace that it is in.
const (
	namespace = "demo-observability"
	name      = "demo"
)

// scenario is the cluster, the operator once it runs, and what the steps know of both.
type scenario struct {
	demo.Scenario
	// observers are told what the operator does.
	observers []reconcilers.Observer
	tree      string
	// said is what the condition said when a check last read it.
	said string
}

// Demo is the demo of the operator for platforms. In a cluster that has a controller of Deployments, the steps of the
// search are left out.
var Demo = demo.Demo{
	Title: "An operator for platforms",
	Users: []string{OperatorUser},
	Open:  Open,

	OpenWithPage: OpenWithPage,
}

// Open installs the definition of the Platform, the role of the operator, and the namespace that the platform is for.
// Nothing that is there already is changed: it is an error.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	s := &scenario{Scenario: demo.Scenario{Options: options}}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

func (s *scenario) open(ctx context.Context) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	s.CleanUp = s.removeOrphans
	return s.Open(ctx, scheme, s.install)
}

func (s *scenario) install(ctx context.Context) error {
	// The platform would leave what is there alone, and never become ready.
	err := s.eachClusterObject(ctx, func(obj client.Object) error {
		return demo.AlreadyThere(fmt.Errorf("%T %s already exists", obj, obj.GetName()))
	})
	if err != nil {
		return err
	}
	crd, err := config.CRD()
	if err != nil {
		return err
	}
	role, err := config.Role()
	if err != nil {
		return err
	}
	home := &corev1.Namespace{}
	home.Name = namespace
	if err := errors.Join(s.Create(ctx, crd, home), s.Grant(ctx, role, OperatorUser)); err != nil {
		return fmt.Errorf("unable to install the operator: %w", err)
	}
	return demo.Eventually(ctx, demo.Patience, demo.All(
		s.May(OperatorUser, "list", v1alpha1.GroupVersion.Group, "platforms", demo.Everywhere),
		func(ctx context.Context) error { return s.Client.List(ctx, &v1alpha1.PlatformList{}) },
	))
}

// eachClusterObject reads the objects without a namespace that a platform has, and calls f with each that is there.
func (s *scenario) eachClusterObject(ctx context.Context, f func(client.Object) error) error {
	// This release has the most objects.
	objects, err := controller.Objects(namespace, name, &v1alpha1.PlatformSpec{Version: controller.Version1})
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range objects {
		if obj.GetNamespace() != "" {
			continue
		}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			err = f(obj)
		}
		if !demo.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeOrphans deletes the cluster's objects of a platform whose operator could not. Those in the namespace go with
// it.
func (s *scenario) removeOrphans(ctx context.Context) error {
	return s.eachClusterObject(ctx, func(obj client.Object) error {
		if obj.GetLabels()[controller.Prefix+"/"+generator.LabelOwnerID] == "" {
			return nil
		}
		return s.Delete(ctx, obj)
	})
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	config, _ := s.Operator.Connect(s.Users[OperatorUser])
	options, failures := demo.ManagerOptions(s.Client.Scheme(), s.Logger), &reconcilers.WatchErrors{}
	options.Cache.DefaultWatchErrorHandler = failures.Handle
	failures.Tell(s.observers...)
	mgr, err := manager.New(config, options)
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	root := controller.New(reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, 10*time.Hour).WithObserver(s.observers...))
	root.AfterReconcile = s.Operator.Count
	s.tree = root.Describe().String()
	if err := root.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}
