package mirror_test

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/mirror/api/v1"
	"github.com/espalier-dev/espalier/examples/mirror/controller"
	"github.com/espalier-dev/espalier/examples/mirror/registry"
	"github.com/espalier-dev/espalier/examples/mirror/webhook"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// registries has the registry of each cluster.
var registries simulation.External[registry.Memory]

// operator sets up the operator as its main function does.
func operator(ctx context.Context, mgr ctrl.Manager) error {
	root := controller.New(espalier.NewConfig(mgr), registries.In(ctx))
	return errors.Join(root.SetupWithManager(ctx, mgr), webhook.SetUp(mgr))
}

// registration says what is sent to which path.
func registration(path string) (string, admissionv1.WebhookClientConfig, []admissionv1.RuleWithOperations) {
	return "mirror.example.com", admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: "default", Name: "mirror", Path: &path},
		}, []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{"mirror.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"mirrors"},
			},
		}}
}

// installed are the webhooks, and the credentials of one site.
func installed() []client.Object {
	mutating, validating := admissionv1.MutatingWebhook{}, admissionv1.ValidatingWebhook{}
	mutating.Name, mutating.ClientConfig, mutating.Rules = registration("/default")
	validating.Name, validating.ClientConfig, validating.Rules = registration("/validate")
	mutating.SideEffects, mutating.AdmissionReviewVersions = new(admissionv1.SideEffectClassNone), []string{"v1"}
	validating.SideEffects, validating.AdmissionReviewVersions = mutating.SideEffects, mutating.AdmissionReviewVersions
	meta := metav1.ObjectMeta{Name: "mirror"}
	return []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{mutating}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{validating},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}},
	}
}

// cluster returns options with the operator and what it needs in the cluster.
func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := v1.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator: operator, Scheme: scheme, Objects: installed(),
		Definitions: simulation.ReadDefinitions(t, "../../../../../examples/mirror/config/crd"),
	}
}

// TestMirrors tells drawn stories of mirrors: each ends as if the mirrors that are left had been created at once.
func TestMirrors(t *testing.T) {
	simulation.Explore(t, cluster(t), simulation.Exploration{
		Resource: &v1.Mirror{},
		Hints: simulation.Hints{
			".spec.upstream": {"https://a.example.com", "https://b.example.com"}, ".spec.image": {"mirror:1", "mirror:2"},
			".spec.credentials": {"login"}, ".spec.storage": {"1Gi"},
		},
	})
}
