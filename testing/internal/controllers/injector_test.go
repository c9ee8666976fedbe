package controllers_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// authority is a certificate of an authority that signed itself.
const authority = `-----BEGIN CERTIFICATE-----
MIIBVTCB+6ADAgECAgEBMAoGCCqGSM49BAMCMA0xCzAJBgNVBAMTAmNhMB4XDTAw
-----END CERTIFICATE-----
`

func hooks(name, annotation, value string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: value}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "a.example.com", SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			ClientConfig:            admissionv1.WebhookClientConfig{URL: ptr.To("https://hooks.example.com/")},
		}},
	}
}

// TestInjector sets the bundles of webhooks from a certificate, a Secret and the options.
func TestInjector(t *testing.T) {
	run(t, controllers.Options{Authority: []byte("from the options")}, func(c cluster) {
		bySecret := hooks("secret", "cert-manager.io/inject-ca-from-secret", "default/direct")
		forbidden := hooks("forbidden", "cert-manager.io/inject-ca-from-secret", "default/serving")
		byCertificate := hooks("certificate", "cert-manager.io/inject-ca-from", "default/serving")
		none := hooks("none", "example.com/a", "default/serving")
		for _, obj := range []*admissionv1.ValidatingWebhookConfiguration{bySecret, forbidden, byCertificate, none} {
			c.create(obj)
		}
		expect := func(want map[*admissionv1.ValidatingWebhookConfiguration]string) {
			c.Helper()
			time.Sleep(time.Second)
			for obj, bundle := range want {
				c.get(obj)
				if got := string(obj.Webhooks[0].ClientConfig.CABundle); got != bundle {
					c.Errorf("the bundle of %s is %q", obj.Name, got)
				}
			}
			c.idle()
		}
		expect(map[*admissionv1.ValidatingWebhookConfiguration]string{
			bySecret: "", forbidden: "", byCertificate: "from the options", none: "",
		})
		secret := func(name, annotation, value string) {
			c.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: name, Annotations: map[string]string{annotation: value},
				},
				Data: map[string][]byte{"ca.crt": []byte(authority)},
			})
		}
		secret("serving", "cert-manager.io/certificate-name", "serving")
		secret("direct", "cert-manager.io/allow-direct-injection", "true")
		expect(map[*admissionv1.ValidatingWebhookConfiguration]string{
			bySecret: authority, forbidden: "", byCertificate: authority, none: "",
		})
	})
}
