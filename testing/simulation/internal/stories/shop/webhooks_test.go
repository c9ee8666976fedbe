package shop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/shop/config"
	"github.com/espalier-dev/espalier/examples/shop/webhooks"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// installation is the namespace of the operator. It has the certificate of its webhooks.
const installation = "shop-operator"

// certificate is the Secret with the authority of the webhooks' certificate.
func certificate() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: installation, Name: "webhook-certificate",
		Annotations: map[string]string{"cert-manager.io/allow-direct-injection": "true"},
	}}
}

// withWebhooks has the operator serve its webhooks too. Their authority is injected.
func withWebhooks(t testing.TB, options simulation.Options) simulation.Options {
	t.Helper()
	mutating, validating, err := config.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	secret := certificate()
	inject := map[string]string{"cert-manager.io/inject-ca-from-secret": client.ObjectKeyFromObject(secret).String()}
	mutating.Annotations, validating.Annotations = inject, inject
	secret.Data = map[string][]byte{"ca.crt": stories.Authority(t, "first")}
	home := &corev1.Namespace{ObjectMeta: stories.Named("", installation)}
	options.Objects = append(options.Objects, home, secret, mutating, validating)
	operator := options.Operator
	options.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		return errors.Join(operator(ctx, mgr), webhooks.SetUp(ctx, mgr.GetWebhookServer()))
	}
	return options
}

// renew renews the certificate of the webhooks.
func renew(w *simulation.World, name string) {
	w.Helper()
	secret := certificate()
	bundle := stories.Authority(w, name)
	w.Update(secret, func() { secret.Data["ca.crt"] = bundle })
	w.Pass(time.Minute)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	configuration.Name = installation
	w.Get(configuration)
	if string(configuration.Webhooks[0].ClientConfig.CABundle) != string(bundle) {
		w.Errorf("the webhooks have not got the certificate %s", name)
	}
}
