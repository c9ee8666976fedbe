// Command tenant is an operator that onboards tenants; see README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// syncPeriod is how often all tenants are looked at again, whatever happens.
const syncPeriod = 10 * time.Hour

type flags struct {
	metricsAddress string
	probeAddress   string
	leaderElection bool
	reserved       string
	describe       bool
}

func main() {
	var f flags
	flag.StringVar(&f.metricsAddress, "metrics-bind-address", "0", "the address that metrics are served at; 0 serves none")
	flag.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "the address that health is served at")
	flag.BoolVar(&f.leaderElection, "leader-elect", false, "let one of several operators be the one that works")
	flag.StringVar(&f.reserved, "reserved-names", "", "names that no tenant may have, separated by commas")
	flag.BoolVar(&f.describe, "describe", false, "print the tree and exit")
	flag.Parse() // --kubeconfig is a flag of controller-runtime

	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	options := controller.Options{
		// A real operator would have a client of the company's directory here.
		Directory:     &directory.Memory{},
		ReservedNames: strings.Split(f.reserved, ","),
	}
	if f.describe {
		_, err := fmt.Print(controller.New(reconcilers.Config{}, options).Describe())
		return err
	}

	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	period := syncPeriod
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{SyncPeriod: &period},
		Metrics:                metricsserver.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress: f.probeAddress,
		LeaderElection:         f.leaderElection,
		LeaderElectionID:       v1alpha1.GroupVersion.Group,
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}

	config := reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, syncPeriod)
	if err := controller.New(config, options).SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the controller of tenants: %w", err)
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
