// Command shop is an operator for web shops; see README.md.
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
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/reconcilers"
)

// retryInterval is how often a host is asked for that belongs to somebody else.
const retryInterval = time.Minute

var (
	metricsAddress = flag.String("metrics-bind-address", "0", "the address that metrics are served at; 0 serves none")
	probeAddress   = flag.String("health-probe-bind-address", ":8081", "the address that health is served at")
	leaderElection = flag.Bool("leader-elect", false, "let one of several operators be the one that works")
	webhookCertDir = flag.String("webhook-cert-dir", "",
		"the folder with tls.crt and tls.key for the webhooks; without it, none are served")
	describe = flag.Bool("describe", false, "print the tree and exit")
)

func main() {
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// A real operator would have a client of the registry here.
	hosts := &registry.Memory{}
	if *describe {
		_, err := fmt.Print(controller.New(reconcilers.Config{}, hosts, retryInterval).Describe())
		return err
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: *metricsAddress},
		HealthProbeBindAddress: *probeAddress,
		LeaderElection:         *leaderElection,
		LeaderElectionID:       v1.GroupVersion.Group,
		// It starts only if something is served there.
		WebhookServer: webhook.NewServer(webhook.Options{CertDir: *webhookCertDir}),
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	if err := controller.New(espalier.NewConfig(mgr), hosts, retryInterval).SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the controller of shops: %w", err)
	}
	if *webhookCertDir != "" {
		if err := webhooks.SetUp(ctx, mgr.GetWebhookServer()); err != nil {
			return fmt.Errorf("unable to set up the webhooks: %w", err)
		}
	}
	err = errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
