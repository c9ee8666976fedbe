// Command plugins is an operator whose shops have databases and queues from plugins; see the README.md beside it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
	"github.com/espalier-dev/espalier/examples/plugins/controller"
	"github.com/espalier-dev/espalier/plugins"
)

var (
	metricsAddress = flag.String("metrics-bind-address", "0", "the address that metrics are served at; 0 serves none")
	probeAddress   = flag.String("health-probe-bind-address", ":8081", "the address that health is served at")
	leaderElection = flag.Bool("leader-elect", false, "let one of several operators be the one that works")
	folder         = flag.String("plugins", "", "the folder with programs that are plugins; empty: none")
	list           = flag.String("plugin-list", "", "the file with their SHA-256, and what they may provide")
)

// sidecars are plugins that run beside, by the flag --sidecar for each: what it may provide, by its socket.
var sidecars = map[string]string{}

func init() {
	flag.Func("sidecar", "a plugin that runs beside: its socket, =, and what it may provide", func(text string) error {
		socket, entry, _ := strings.Cut(text, "=")
		sidecars[socket] = entry
		return nil
	})
}

// passwordKey is the environment variable that the plugin of PostgreSQL gets, and no other one.
const passwordKey = "POSTGRES_PASSWORD_KEY"

func main() {
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
	host := newHost(mgr)
	err = errors.Join(mgr.Add(host), controller.New(espalier.NewConfig(mgr), host).SetupWithManager(ctx, mgr))
	if err != nil {
		return fmt.Errorf("unable to set up the controller of shops: %w", err)
	}
	err = errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newHost returns the host that the flags ask for.
func newHost(mgr manager.Manager) *plugins.Host {
	return &plugins.Host{
		Folder:      *folder,
		List:        *list,
		Sidecars:    sidecars,
		Environment: map[string][]string{"postgres": {passwordKey + "=" + os.Getenv(passwordKey)}},
		Advertise:   &plugins.Advertisement{Client: mgr.GetClient(), Operator: "market"},
	}
}
