// Command tenant is an operator that onboards tenants; see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
)

// syncPeriod is how often all tenants are looked at again, also if there is no event.
const syncPeriod = 10 * time.Hour

var (
	metricsAddress = flag.String("metrics-bind-address", "0", "the address that metrics are served at; 0 serves none")
	probeAddress   = flag.String("health-probe-bind-address", ":8081", "the address that health is served at")
	leaderElection = flag.Bool("leader-elect", false, "let one of several operators be the one that works")
	namespace      = flag.String("namespace", "default",
		"the namespace of the operator, where it keeps the list of all tenants")
	reserved           = flag.String("reserved-names", "", "names that no tenant may have, separated by commas")
	defaultsKubeconfig = flag.String("defaults-kubeconfig", "",
		"leads to the cluster that has the defaults of tenants, if it is another one")
	webhookCertDir = flag.String("webhook-cert-dir", "",
		"the folder with tls.crt and tls.key for the webhooks; without it, none are served")
	describe = flag.Bool("describe", false, "print the trees and exit")
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
	options := controller.Options{
		// A real operator would have a client of the company's directory here.
		Directory:         &directory.Memory{},
		ReservedNames:     strings.FieldsFunc(*reserved, func(r rune) bool { return r == ',' }),
		RegistryNamespace: *namespace,
	}
	if *describe {
		_, err := fmt.Print(controller.Describe(options))
		return err
	}

	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{SyncPeriod: new(syncPeriod)},
		Metrics:                metricsserver.Options{BindAddress: *metricsAddress},
		HealthProbeBindAddress: *probeAddress,
		LeaderElection:         *leaderElection,
		LeaderElectionID:       v1alpha1.GroupVersion.Group,
		// It starts only if something is served there.
		WebhookServer: webhook.NewServer(webhook.Options{CertDir: *webhookCertDir}),
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	if *defaultsKubeconfig != "" {
		if options.DefaultsCluster, err = addHub(mgr, *defaultsKubeconfig, scheme); err != nil {
			return fmt.Errorf("unable to add the cluster with the defaults: %w", err)
		}
	}

	config := reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, syncPeriod)
	if err := controller.New(config, options).SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the controller of tenants: %w", err)
	}
	if err := controller.NewRegistry(config, options).SetupWithManager(ctx, mgr); err != nil {
		return fmt.Errorf("unable to set up the controller of the registry: %w", err)
	}
	if *webhookCertDir != "" {
		if err := controller.SetupWebhooks(ctx, mgr.GetWebhookServer(), options); err != nil {
			return fmt.Errorf("unable to set up the webhooks: %w", err)
		}
	}
	err = errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addHub connects to the cluster of a kubeconfig, and has the manager start its cache.
func addHub(mgr ctrl.Manager, kubeconfig string, scheme *runtime.Scheme) (cluster.Cluster, error) {
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	hub, err := cluster.New(restConfig, func(options *cluster.Options) { options.Scheme = scheme })
	if err != nil {
		return nil, err
	}
	return hub, mgr.Add(hub)
}
