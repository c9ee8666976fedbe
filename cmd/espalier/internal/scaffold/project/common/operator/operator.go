// Package operator has what all programs that run the operator share.
package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	//scaffold:if webhooks
	webhookserver "sigs.k8s.io/controller-runtime/pkg/webhook"
	//scaffold:end

	//scaffold:if webhooks
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/common/webhook"
	//scaffold:end
	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/controller"
	"github.com/espalier-dev/espalier/metrics"
	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Options say where the operator serves, and how it runs. The zero value serves nothing, and elects no leader.
type Options struct {
	MetricsAddress string
	MetricsSecure  bool
	MetricsCertDir string
	ProbeAddress   string
	LeaderElection bool
	//scaffold:if webhooks
	// WebhookCertDir is the folder with tls.crt and tls.key for the webhooks. Without it, none are served.
	WebhookCertDir string
	WebhookHost    string
	WebhookPort    int
	//scaffold:end
}

// AddFlags adds the flags of the operator.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0",
		"the address that metrics and the page of the operator are served at, such as :8443; 0 serves none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true,
		"serve metrics by HTTPS, to those whom the API server knows and allows it; otherwise by HTTP, to everybody")
	flags.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "",
		"the folder with tls.crt and tls.key for metrics; without it, the certificate is self-signed")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "the address that health is served at")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "let one of several operators be the one that works")
	//scaffold:if webhooks
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "",
		"the folder with tls.crt and tls.key for the webhooks; without it, none are served")
	flags.IntVar(&o.WebhookPort, "webhook-port", 9443, "the port that webhooks are served at")
	//scaffold:end
}

// Run runs the operator until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	failures := &reconcilers.WatchErrors{}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultWatchErrorHandler: failures.Handle},
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.ProbeAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "placeholder-operator",
		LeaderElectionReleaseOnCancel: true, // the program ends when the manager does
		//scaffold:if webhooks
		WebhookServer: webhookserver.NewServer(webhookserver.Options{
			Host: o.WebhookHost, Port: o.WebhookPort, CertDir: o.WebhookCertDir,
		}),
		//scaffold:end
	})
	if err != nil {
		return fmt.Errorf("unable to make the manager: %w", err)
	}
	counts, err := metrics.New(metrics.Options{})
	if err != nil {
		return err
	}
	trees := page.New(page.Options{Access: page.Reviews(mgr.GetClient()), Elected: mgr.Elected()})
	failures.Tell(counts, trees)
	observed := espalier.NewConfig(mgr).WithObserver(counts, trees)
	if err := controller.SetUp(ctx, mgr, observed); err != nil {
		return fmt.Errorf("unable to set up the controller: %w", err)
	}
	//scaffold:if webhooks
	if o.WebhookCertDir != "" {
		if err := webhook.SetUp(ctx, mgr); err != nil {
			return fmt.Errorf("unable to set up the webhooks: %w", err)
		}
	}
	//scaffold:end
	err = errors.Join(
		mgr.AddMetricsServerExtraHandler("/espalier/", trees),
		mgr.AddHealthzCheck("healthz", healthz.Ping),
		mgr.AddReadyzCheck("readyz", healthz.Ping),
	)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// metrics returns how metrics are served. The page of the operator is served beside them, and shows a resource to whom
// the API server lets get it.
func (o *Options) metrics() metricsserver.Options {
	served := metricsserver.Options{
		BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure, CertDir: o.MetricsCertDir,
	}
	if o.MetricsAddress == "" {
		served.BindAddress = "0"
	}
	if o.MetricsSecure {
		served.FilterProvider = page.KeepToken(filters.WithAuthenticationAndAuthorization)
	}
	return served
}
