package webhookserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/webhookserver"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

var configMapRules = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
}}

// start runs a server that denies all that it is asked at /deny, until the test ends.
func start(t *testing.T) *webhookserver.Server {
	t.Helper()
	server, err := webhookserver.New()
	if err != nil {
		t.Fatal(err)
	}
	server.Register("/deny", &admission.Webhook{Handler: admission.HandlerFunc(
		func(context.Context, admission.Request) admission.Response { return admission.Denied("no way") },
	)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server failed: %v", err)
		}
	})
	controlplanetest.Eventually(t, "the server does not start", func(context.Context) error {
		return server.StartedChecker()(nil)
	})
	return server
}

func TestCertificateIsTrustedByItsBundleOnly(t *testing.T) {
	server := start(t)
	registered := server.Mutating("test", webhookserver.Hook{Path: "/deny"}).Webhooks[0].ClientConfig
	bundle := x509.NewCertPool()
	if !bundle.AppendCertsFromPEM(registered.CABundle) {
		t.Fatal("the bundle has no certificate, want one")
	}
	for name, roots := range map[string]*x509.CertPool{"bundle": bundle, "none": x509.NewCertPool()} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		response, err := (&http.Client{Transport: transport}).Get(*registered.URL)
		if trusted := err == nil; trusted != (roots == bundle) {
			t.Errorf("with the roots %s, the error is %v, want one only without the bundle", name, err)
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		transport.CloseIdleConnections()
	}
}

func TestAPIServerCallsTheWebhook(t *testing.T) {
	server := start(t)
	c, err := client.New(plane.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mutated, validated, others := plane.Namespace(t), plane.Namespace(t), plane.Namespace(t)
	for _, registered := range []client.Object{
		server.Mutating("mutating", webhookserver.Hook{Path: "/deny", Rules: configMapRules, Namespaces: []string{mutated}}),
		server.Validating("validating", webhookserver.Hook{Path: "/deny", Rules: configMapRules, Namespaces: []string{validated}}),
	} {
		if err := c.Create(t.Context(), registered); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), registered); err != nil {
				t.Error(err)
			}
		})
	}
	create := func(ctx context.Context, namespace string) error {
		return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"}})
	}
	for namespace, hook := range map[string]string{mutated: "deny.mutating.espalier.dev", validated: "deny.validating.espalier.dev"} {
		controlplanetest.Eventually(t, "the webhook is not called", func(ctx context.Context) error {
			err := create(ctx, namespace)
			if err == nil {
				return errors.New("an object was created")
			}
			if diff := cmp.Diff(`admission webhook "`+hook+`" denied the request: no way`, err.Error()); diff != "" {
				return errors.New("the answer differs (-expected, +actual):\n" + diff)
			}
			return nil
		})
	}
	if err := create(t.Context(), others); err != nil {
		t.Errorf("the webhook is called for another namespace: %v", err)
	}
}
