// Package sharderstest runs a sharder for tests: the stand-in, or the sharder of kubernetes-controller-sharding itself.
package sharderstest

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/internal/testenv/sharder"
)

// Variable names the variable with the path of the sharder itself. It listens at port 9443, so one can run at a time.
const Variable = "ESPALIER_SHARDER"

// Start runs the sharder itself until the test ends, if the variable has its path, and otherwise a stand-in that checks
// all assignments twice in a minute: a webhook that has assigned an object by an older state of the ring is put right
// within the time of a test.
func Start(t testing.TB, server *rest.Config) {
	t.Helper()
	if os.Getenv(Variable) != "" {
		Original(t, server)
		return
	}
	StandInThatSyncs(30*time.Second)(t, server)
}

// StandIn runs the stand-in until the test ends.
func StandIn(t testing.TB, server *rest.Config) {
	t.Helper()
	StandInThatSyncs(0)(t, server)
}

// StandInThatSyncs returns StandIn for a stand-in that checks all assignments each period. 0 is that of the sharder.
func StandInThatSyncs(period time.Duration) func(testing.TB, *rest.Config) {
	return func(t testing.TB, server *rest.Config) {
		t.Helper()
		standIn(t, server, period)
	}
}

func standIn(t testing.TB, server *rest.Config, period time.Duration) {
	t.Helper()
	hooks, err := webhookserver.New()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme: scheme.Scheme, WebhookServer: hooks, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	address := hooks.Mutating("sharder", webhookserver.Hook{}).Webhooks[0].ClientConfig
	s, err := sharder.New(mgr, sharder.Options{Webhook: address, SyncPeriod: period})
	if err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register(sharder.WebhookPath, s.Webhook())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the stand-in ends with %v", err)
		}
	})
}

// Original runs the sharder itself until the test ends.
func Original(t testing.TB, server *rest.Config) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bundle, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	write("tls.crt", bundle)
	write("tls.key", key)
	config := write("config.yaml", fmt.Appendf(nil, `
apiVersion: config.sharding.timebertt.dev/v1alpha1
kind: SharderConfig
health: {bindAddress: "0"}
metrics: {bindAddress: "0"}
webhook:
  server: {certDir: %s}
  config:
    clientConfig: {url: "https://127.0.0.1:9443", caBundle: %s}
`, dir, base64.StdEncoding.EncodeToString(bundle)))
	kubeconfig, err := demo.Kubeconfig(server)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Getenv(Variable), "--config="+config)
	command.Env = append(os.Environ(), "LEADER_ELECT=false", "KUBECONFIG="+write("kubeconfig", kubeconfig))
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatalf("start the sharder: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = output.Close()
		if said, err := os.ReadFile(output.Name()); err == nil && t.Failed() {
			t.Logf("the sharder said:\n%s", said)
		}
	})
}
