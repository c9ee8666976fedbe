// Package scenario shows what the operator for platforms does, step by step, on a real cluster, and checks it. The
// steps are data, so that a test can play the same scenario under worse conditions.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/config"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
)

// OperatorUser is the name of the user that the operator is.
const OperatorUser = "platform-operator"

// The platform of the scenario, and its namespace.
const (
	namespace = "demo-observability"
	name      = "demo"
)

// scenario is the cluster, and the operator once it runs.
type scenario struct {
	demo.Scenario
	// observers are told what the operator does.
	observers []reconcilers.Observer
}

// Demo is the demo of the operator for platforms. In a cluster that has a controller of Deployments, the steps of the
// search are left out.
var Demo = demo.Demo{
	Title: "An operator for platforms",
	Users: []string{OperatorUser},
	Open:  Open,

	OpenWithPage: openWithPage,
}

// Open installs the definition of the Platform, the role of the operator, and the namespace of the platform. It is an
// error if one of these objects exists, or an object without a namespace of the platform.
func Open(ctx context.Context, options demo.Options) (*demo.Scenario, error) {
	return open(ctx, options)
}

func open(
	ctx context.Context, options demo.Options, observers ...reconcilers.Observer,
) (*demo.Scenario, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	s := &scenario{Scenario: demo.Scenario{Options: options}, observers: observers}
	if err := s.Open(ctx, scheme, s.install); err != nil {
		return nil, err
	}
	s.Steps = s.steps()
	return &s.Scenario, nil
}

// openWithPage is [Open], with a page of the operator that is served on the loopback interface until ctx ends. It
// returns the address of the page.
func openWithPage(ctx context.Context, options demo.Options) (*demo.Scenario, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("unable to serve the page: %w", err)
	}
	shown := page.New(page.Options{Access: page.OnLoopback()})
	s, err := open(ctx, options, shown)
	if err != nil {
		return nil, "", errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: shown, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	// The error is that the server is closed.
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return s, "http://" + listener.Addr().String() + "/", nil
}

func (s *scenario) install(ctx context.Context) error {
	// This release has the most objects.
	objects, err := controller.Objects(namespace, name, &v1alpha1.PlatformSpec{Version: controller.Version1})
	if err != nil {
		return err
	}
	isInNamespace := func(obj client.Object) bool { return obj.GetNamespace() != "" }
	return s.Install(ctx, demo.Installation{
		User:       OperatorUser,
		Config:     config.Files,
		Objects:    []client.Object{demo.Named[corev1.Namespace]("", namespace)},
		Brings:     slices.DeleteFunc(objects, isInNamespace),
		OwnerLabel: controller.Prefix + "/" + generator.LabelOwnerID,
	})
}

// startOperator sets up the operator, as main.go of the example does, and lets it run.
func (s *scenario) startOperator(ctx context.Context) error {
	failures := &reconcilers.WatchErrors{}
	failures.Tell(s.observers...)
	mgr, err := s.NewManager(OperatorUser, func(options *manager.Options) {
		options.Cache.DefaultWatchErrorHandler = failures.Handle
	})
	if err != nil {
		return err
	}
	root := controller.New(reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, 10*time.Hour).WithObserver(s.observers...))
	root.AfterReconcile = s.Operator.Count
	if err := root.SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the operator: %w", err)
	}
	s.Operator.Start(ctx, mgr)
	return nil
}
