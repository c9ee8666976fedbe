package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// validating returns a configuration for a webhook that is asked about new ConfigMaps in a namespace.
func validating(
	name, namespace string, called admissionregistrationv1.WebhookClientConfig,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), ClientConfig: called,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	}
}

func service(name string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: "default", Name: name, Path: ptr.To("/validate"),
	}}
}

// refused waits until a webhook that takes effect later refuses a ConfigMap with all parts of a text.
func refused(t *testing.T, c client.Client, namespace string, parts ...string) {
	t.Helper()
	controlplanetest.Eventually(t, "the webhook refuses", func(ctx context.Context) error {
		obj := configMap("a")
		obj.Namespace = namespace
		err := c.Create(ctx, obj, client.DryRunAll)
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				return fmt.Errorf("the error is %w, want %q in it", errors.Join(errors.New("none"), err), part)
			}
		}
		return nil
	})
}

// TestWebhooks has the webhooks of a manager called at its port, and some that cannot be called.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	env := &cluster.Environment{
		WebhookInstallOptions: cluster.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{
				validating("installed", "default", service("hooks")),
			},
		},
	}
	config := start(t, env)
	c := newClient(t, config)
	serving := env.WebhookInstallOptions
	options := managerOptions()
	options.WebhookServer = webhook.NewServer(webhook.Options{
		Host: serving.LocalServingHost, Port: serving.LocalServingPort, CertDir: serving.LocalServingCertDir,
	})
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register("/validate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			return admission.Denied("asked by " + r.UserInfo.Username)
		})})
	runManager(t, mgr)
	refused(t, c, "default", `"installed.example.com" denied the request: asked by admin`)

	url := fmt.Sprintf("https://%s:%d/validate", serving.LocalServingHost, serving.LocalServingPort)
	for name, called := range map[string]admissionregistrationv1.WebhookClientConfig{
		"url":      {URL: &url, CABundle: serving.LocalServingCAData},
		"nothing":  service("missing"),
		"pods":     service("pods"),
		"external": service("external"),
		"trust":    {URL: &url},
	} {
		err := errors.Join(
			c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}),
			c.Create(t.Context(), validating(name, name, called)))
		if err != nil {
			t.Fatal(err)
		}
	}
	ports := []corev1.ServicePort{{Port: 443}}
	err = errors.Join(
		c.Create(t.Context(), &corev1.Service{ObjectMeta: objectMeta("pods"), Spec: corev1.ServiceSpec{Ports: ports}}),
		c.Create(t.Context(), &corev1.Service{ObjectMeta: objectMeta("external"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
		}}))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, c, "url", "asked by admin")
	refused(t, c, "nothing", `services "missing" not found`)
	refused(t, c, "pods", "nothing listens at Service default/pods", "give the webhook a url")
	// Nothing listens at the port 443 of this machine, but it was tried there.
	refused(t, c, "external", "failed calling webhook", ":443")
	refused(t, c, "trust", "x509")
}
