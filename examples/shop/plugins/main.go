// Command plugins is the operator for shops, with databases and queues from plugins; see README.md.
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/plugins/parts"
	"github.com/espalier-dev/espalier/examples/shop/registry"
	"github.com/espalier-dev/espalier/plugins"
)

const (
	// retryInterval is how often a host is asked for that belongs to somebody else.
	retryInterval = time.Minute
	// passwordKey is the environment variable that the plugin of PostgreSQL gets, and no other one.
	passwordKey = "POSTGRES_PASSWORD_KEY"
)

var (
	metricsAddress = flag.String("metrics-bind-address", "0", "the address that metrics are served at; 0 serves none")
	probeAddress   = flag.String("health-probe-bind-address", ":8081", "the address that health is served at")
	leaderElection = flag.Bool("leader-elect", false, "let one of several operators be the one that works")
	folder         = flag.String("plugins", "", "the folder with programs that are plugins; empty: none")
	list           = flag.String("plugin-list", "", "the file with their SHA-256, and what they may provide")
	// sidecars are plugins that run beside: what they may provide, by their sockets.
	sidecars = map[string]string{}
)

func main() {
	flag.Func("sidecar", "a plugin that runs beside: its socket, =, and what it may provide", func(text string) error {
		socket, entry, _ := strings.Cut(text, "=")
		sidecars[socket] = entry
		return nil
	})
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
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
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	host := &plugins.Host{
		Folder: *folder, List: *list, Sidecars: sidecars,
		Environment: map[string][]string{"postgres": {passwordKey + "=" + os.Getenv(passwordKey)}},
		Advertise:   &plugins.Advertisement{Client: mgr.GetClient(), Operator: "shop"},
	}
	// A real operator would have a client of the registry here.
	shops := controller.New(espalier.NewConfig(mgr), &registry.Memory{}, retryInterval,
		parts.Database(host), parts.Queue(host))
	err = errors.Join(mgr.Add(host), shops.SetupWithManager(ctx, mgr),
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return fmt.Errorf("unable to set up the controller of shops: %w", err)
	}
	return mgr.Start(ctx)
}
