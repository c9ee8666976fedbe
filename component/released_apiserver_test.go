package component_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deadWebhooks is a configuration of a kind, with a webhook for a resource whose server does not run.
const deadWebhooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: %[2]s}
webhooks:
- name: guard.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [%[4]s], operations: [CREATE, UPDATE]}]
  clientConfig: {url: "https://127.0.0.1:1"}
`

const (
	strictPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  validations: [{expression: "object.data.name != 'new'"}]
`
	strictBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`
	fixedPort = "{apiVersion: v1, kind: Service, metadata: {name: %s}, " +
		"spec: {type: NodePort, ports: [{port: 80, nodePort: 31777}]}}"
)

// TestRefusalReleasesWhatIsInTheWay: an upgrade drops what refuses the rest of it, be it a webhook that is dead, an
// admission policy, or a Service with a node port that its successor has too.
func TestRefusalReleasesWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	c := live(t)
	changed := func(namespace string) client.Object {
		part := partOf(namespace, "part", "0")
		part.Data["name"] = "new"
		return part
	}
	secret := func(value string) func(namespace string) client.Object {
		return func(namespace string) client.Object {
			return &corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"},
				StringData: map[string]string{"a": value},
			}
		}
	}
	webhooks := func(kind, name, resource string) func(namespace string) client.Object {
		return func(namespace string) client.Object {
			return manifestOf(t, "", fmt.Sprintf(deadWebhooks, kind, namespace+name, namespace, resource))
		}
	}
	policy := func(text string) func(namespace string) client.Object {
		return func(namespace string) client.Object { return manifestOf(t, "", fmt.Sprintf(text, namespace)) }
	}
	service := func(name string) func(namespace string) client.Object {
		return func(namespace string) client.Object {
			return manifestOf(t, namespace, fmt.Sprintf(fixedPort, name))
		}
	}
	type objects = []func(namespace string) client.Object
	for name, test := range map[string]struct{ stays, dropped, desired objects }{
		"validating": {dropped: objects{webhooks("Validating", "", "configmaps")}, desired: objects{changed}},
		"secret": {
			stays: objects{secret("a")}, desired: objects{secret("b")},
			dropped: objects{webhooks("Validating", "", "secrets")},
		},
		"mutating": {
			dropped: objects{webhooks("Mutating", "", "configmaps")},
			desired: objects{changed, webhooks("Mutating", "-new", "pods")},
		},
		"policy":  {dropped: objects{policy(strictPolicy), policy(strictBinding)}, desired: objects{changed}},
		"service": {dropped: objects{service("old")}, desired: objects{service("new")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := plane.Namespace(t)
			made := func(all ...objects) (list []client.Object) {
				for _, makers := range all {
					for _, maker := range makers {
						list = append(list, maker(namespace))
					}
				}
				return list
			}
			t.Cleanup(func() {
				// The test may run again on this server, and wants the same node port then.
				for _, object := range made(test.desired) {
					if err := c.Delete(context.WithoutCancel(t.Context()), object); err != nil {
						t.Error(err)
					}
				}
			})
			startComponents(t, plane.Config(t), namespace, assemblyOptions{})
			first := made(test.stays, test.dropped)
			if name != "secret" {
				first = append(first, partOf(namespace, "part", "0"))
			}
			assembly := resources.NewAssembly(namespace, "all", first...)
			assemble(t, c, assembly)("it is not deployed")
			desired := made(test.desired)
			controlplanetest.Eventually(t, "nothing is refused", func(ctx context.Context) error {
				next := desired[0].DeepCopyObject().(client.Object)
				next.SetName("probe")
				if c.Create(ctx, next, client.DryRunAll) == nil {
					return errors.New("it would be created")
				}
				return nil
			})
			desire(t, c, assembly, desired...)
			controlplanetest.Eventually(t, "the upgrade does not end", func(ctx context.Context) error {
				errs := []error{hasState(ctx, c, assembly, apis.ComponentReady)}
				for _, object := range made(test.dropped) {
					errs = append(errs, isGone(c, object)(ctx))
				}
				return errors.Join(errs...)
			})
		})
	}
}
