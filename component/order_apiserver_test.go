package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWebhookThatRefusesWhatItsServerNeeds: the webhook refuses all ConfigMaps as long as its server does not run, and
// the server needs one. It comes after it, and goes before it.
func TestWebhookThatRefusesWhatItsServerNeeds(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	webhook := manifestOf(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: configmaps.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE, DELETE]}]
  clientConfig: {service: {namespace: %[1]s, name: server}}
`, namespace))
	config := partOf(namespace, "config", "0")
	server := manifestOf(t, namespace, "{apiVersion: v1, kind: Service, metadata: {name: server}, spec: {ports: [{port: 443}]}}")
	assembly := resources.NewAssembly(namespace, "all", webhook, config, server)
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deployed", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
	controlplanetest.Eventually(t, "the webhook refuses nothing", func(ctx context.Context) error {
		if err := c.Create(ctx, partOf(namespace, "refused", "0"), client.DryRunAll); !apierrs.IsInternalError(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	if err := c.Delete(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "it is not deleted", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(assembly), assembly); !apierrs.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

// TestServerThatDoesNotAnswer: an APIService without a server keeps the component from being ready, and no instance of
// another type from being created.
func TestServerThatDoesNotAnswer(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	t.Parallel()
	// The APIService would disturb the discovery of other tests.
	env, c := startOwn(t, controlplane.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
	})
	const namespace = "default"
	startComponents(t, env.Config(), namespace, assemblyOptions{})
	definition := resources.CRD()
	definition.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	assembly := resources.NewAssembly(namespace, "all",
		manifestOf(t, "", `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.com}
spec: {group: metrics.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
  service: {namespace: default, name: nobody}}
`), definition,
		manifestOf(t, namespace, "{apiVersion: test.espalier.dev/v1, kind: Widget, metadata: {name: instance}}"),
		manifestOf(t, namespace, "{apiVersion: metrics.example.com/v1, kind: Metric, metadata: {name: instance}}"),
		partOf(namespace, "beside", "0"), partOf(namespace, "later", "1"))
	if err := c.Create(t.Context(), assembly); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the instance is not created", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "instance"}, &resources.Widget{})
	})
	controlplanetest.Eventually(t, "the APIService is not named", func(ctx context.Context) error {
		if err := hasState(ctx, c, assembly, apis.ComponentProcessing); err != nil {
			return err
		}
		if text := assembly.Status.Conditions[0].Message; !strings.Contains(text, "waiting for APIService v1.metrics.example.com: not available") {
			return errors.New(text)
		}
		return nil
	})
	for name, there := range map[string]bool{"beside": true, "later": false} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}); (err == nil) != there {
			t.Errorf("%s: the read of the object ends with %v, want it there: %t", name, err, there)
		}
	}
}
