package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// authority returns the certificate of one.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// hooks label ConfigMaps, and refuse those with a key "bad".
func hooks(address string) http.Handler {
	if address != "hooks.system.svc:443" {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/mutate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			return admission.PatchResponseFromRaw(r.Object.Raw,
				[]byte(strings.Replace(string(r.Object.Raw), `"metadata":{`, `"metadata":{"labels":{"by":"`+r.UserInfo.Username+`"},`, 1)))
		})})
	mux.Handle("/validate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			if strings.Contains(string(r.Object.Raw), `"bad"`) {
				return admission.Denied("it is bad")
			}
			return admission.Allowed("")
		})})
	return mux
}

func clientConfig(path string, ca []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "hooks", Path: &path},
		CABundle: ca,
	}
}

var (
	none      = admissionregistrationv1.SideEffectClassNone
	creations = []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
		},
	}}
)

func validating(ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ClientConfig: clientConfig("/validate", ca), Rules: creations,
		}},
	}
}

func TestWebhooks(t *testing.T) {
	run(t, server.Options{Webhooks: hooks}, func(c cluster) {
		c.create(validating(authority(t)))
		c.create(&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
				ClientConfig: clientConfig("/mutate", authority(t)), Rules: creations,
			}},
		})
		synctest.Wait() // The server sees the configurations.
		obj := configMap("a")
		c.create(obj)
		if obj.Labels["by"] != "kubernetes-admin" {
			c.Errorf("the webhook was not called: %v", obj)
		}
		bad := configMap("b")
		bad.Data["bad"] = "1"
		err := c.Create(c.ctx, bad)
		c.refused(err, apierrors.IsForbidden)
		c.refused(err, func(err error) bool { return strings.Contains(err.Error(), "it is bad") })
		c.create(&corev1.Secret{ObjectMeta: meta("a"), StringData: map[string]string{"bad": "1"}})
	})
}

// TestUntrustedWebhook has a webhook without the bundle of an authority, and one that is not there.
func TestUntrustedWebhook(t *testing.T) {
	run(t, server.Options{Webhooks: hooks}, func(c cluster) {
		configuration := validating(nil)
		c.create(configuration)
		synctest.Wait()
		err := c.Create(c.ctx, configMap("a"))
		c.refused(err, apierrors.IsInternalError)
		c.refused(err, func(err error) bool { return strings.Contains(err.Error(), "unknown authority") })
		configuration.Webhooks[0].ClientConfig.Service.Name = "nobody"
		c.must(c.Update(c.ctx, configuration))
		synctest.Wait()
		err = c.Create(c.ctx, configMap("a"))
		c.refused(err, func(err error) bool { return strings.Contains(err.Error(), "connection refused") })
	})
}
