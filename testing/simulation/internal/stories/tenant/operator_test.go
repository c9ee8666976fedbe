package tenant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/tenant/config"
	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/examples/tenant/directory"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// platform is the namespace of the administrators. It has the ConfigMap of defaults, and the list of tenants.
const platform = "platform"

// syncPeriod is that of the operator's main function.
const syncPeriod = 10 * time.Hour

// directories has the directory of tenants of each world.
var directories simulation.External[directory.Memory]

// operator sets up the operator as its main function does.
func operator(ctx context.Context, mgr ctrl.Manager) error {
	options := controller.Options{Directory: directories.In(ctx), RegistryNamespace: platform}
	config := reconcilers.NewConfig(mgr, &v1alpha1.Tenant{}, syncPeriod)
	return errors.Join(
		controller.New(config, options).SetupWithManager(ctx, mgr),
		controller.NewRegistry(config, options).SetupWithManager(ctx, mgr),
		controller.SetupWebhooks(ctx, mgr.GetWebhookServer(), options),
	)
}

// cluster returns options with the operator, what it needs in the cluster, and the defaults of tenants.
func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	crd, err := config.CRD()
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator:    operator,
		Manager:     ctrl.Options{Cache: cache.Options{SyncPeriod: new(syncPeriod)}},
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{crd},
		Objects:     append(webhooks(t), &corev1.Namespace{ObjectMeta: stories.Named("", platform)}, newDefaults()),
		Always:      laws(),
	}
}

// installation is the namespace of the operator. It has the certificate of its webhooks.
const installation = "tenant-operator"

// certificate is the Secret with the authority of the webhooks' certificate.
func certificate() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: installation, Name: "webhook-certificate",
		Annotations: map[string]string{"cert-manager.io/allow-direct-injection": "true"},
	}}
}

// webhooks returns what the installation of the operator's webhooks consists of. The authority is injected.
func webhooks(t testing.TB) []client.Object {
	t.Helper()
	mutating, validating, err := config.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	secret := certificate()
	inject := map[string]string{"cert-manager.io/inject-ca-from-secret": client.ObjectKeyFromObject(secret).String()}
	mutating.Annotations, validating.Annotations = inject, inject
	secret.Data = map[string][]byte{"ca.crt": stories.Authority(t, "first")}
	return []client.Object{&corev1.Namespace{ObjectMeta: stories.Named("", installation)}, secret, mutating, validating}
}

func newDefaults() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: stories.Named(platform, "defaults"), Data: map[string]string{
		"quota.requests.cpu": "4",
		"quota.pods":         "20",
		"limits.cpu":         "500m",
		"limits.memory":      "256Mi",
		"role.developer":     "edit",
		"role.guest":         "view",
	}}
}
