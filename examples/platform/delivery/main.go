// Command delivery is an operator that delivers a Helm chart and a kustomization; see the README.md of the platform.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/controller"
	"github.com/espalier-dev/espalier/reconcilers"
)

// syncPeriod is how often all resources are looked at again, even without an event.
const syncPeriod = 10 * time.Hour

func main() {
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does without metrics, health probes and leader election, which the operator for platforms has.
func run(ctx context.Context) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	chart, err := controller.Chart()
	if err != nil {
		return fmt.Errorf("unable to read the chart: %w", err)
	}
	kustomization, err := controller.Kustomization()
	if err != nil {
		return fmt.Errorf("unable to read the kustomization: %w", err)
	}
	monitors := controller.NewMonitor(reconcilers.NewConfig(mgr, &v1alpha1.Monitor{}, syncPeriod), chart)
	agents := controller.NewAgent(reconcilers.NewConfig(mgr, &v1alpha1.Agent{}, syncPeriod), kustomization)
	if err := errors.Join(monitors.SetupWithManager(ctx, mgr), agents.SetupWithManager(ctx, mgr)); err != nil {
		return fmt.Errorf("unable to set up the controllers: %w", err)
	}
	return mgr.Start(ctx)
}
