package bundles_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	bundleVersion = "platform.example.com/bundle-version"
	policyWords   = "Installing CRDs with version before v1.5.0 is prohibited by default. " +
		"Uninstall the policy to install older versions."
)

// definition makes the definition of a type of a bundle.
func definition(group, plural, kind, version string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + group, Annotations: map[string]string{bundleVersion: version},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
}

func instanceOf(d *apiextensionsv1.CustomResourceDefinition, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(d.Spec.Group + "/v1")
	object.SetKind(d.Spec.Names.Kind)
	object.SetName(name)
	return object
}

// crdClient returns a client like live that knows CustomResourceDefinitions.
func crdClient(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := resources.NewScheme()
	must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.NewWithWatch(plane.Config(t), client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// age makes a definition an old one.
func age(t *testing.T, c client.Client, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	eventually(t, "the definition does not age", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		for i := range d.Status.Conditions {
			d.Status.Conditions[i].LastTransitionTime = metav1.NewTime(d.CreationTimestamp.Add(-time.Hour))
		}
		return c.Status().Update(ctx, d)
	})
}

// policed is a component with two types, the second of which may not be written any more: an admission policy refuses
// definitions of its version.
type policed struct {
	client.Client
	*controlplane.Requests
	free, refused *apiextensionsv1.CustomResourceDefinition
	assembly      *resources.Assembly
	policy        []client.Object
}

func police(t *testing.T) *policed {
	t.Helper()
	p := &policed{Client: crdClient(t)}
	home := plane.Namespace(t)
	group := home + ".example.com"
	p.free, p.refused = definition(group, "ashes", "Ash", "v1.6.1"), definition(group, "birches", "Birch", "v1.4.0")
	p.assembly = resources.NewAssembly(home, "gateway", p.free, p.refused)
	p.Requests = startOperator(t, home, resources.AssemblyGenerator(), options{})
	must(t, p.Create(t.Context(), p.assembly))
	eventually(t, "it is not deployed", isReady(p, p.assembly))

	deny := admissionregistrationv1.Fail
	name := "safe-upgrades." + group
	p.policy = []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: &deny,
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
							Rule: admissionregistrationv1.Rule{APIGroups: []string{"apiextensions.k8s.io"},
								APIVersions: []string{"v1"}, Resources: []string{"customresourcedefinitions"}},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: fmt.Sprintf("object.spec.group != '%s' || !has(object.metadata.annotations) || "+
						"!object.metadata.annotations.exists(k, k == '%s') || "+
						"!object.metadata.annotations['%s'].matches('v1.[0-4].\\\\d+|v0')",
						group, bundleVersion, bundleVersion),
					Message: policyWords,
				}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
	for _, object := range p.policy {
		must(t, p.Create(t.Context(), object))
	}
	t.Cleanup(func() { p.lift(t) })
	eventually(t, "the policy is not in force", func(ctx context.Context) error {
		if err := p.touch(ctx, client.DryRunAll); err == nil {
			return fmt.Errorf("the definition can be written")
		}
		return nil
	})
	return p
}

// touch changes the definition that the policy protects.
func (p *policed) touch(ctx context.Context, options ...client.PatchOption) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"names":{"shortNames":["bir"]}}}`))
	return p.Patch(ctx, p.refused.DeepCopy(), patch, options...)
}

// lift takes the policy away.
func (p *policed) lift(t *testing.T) {
	t.Helper()
	for _, object := range p.policy {
		must(t, client.IgnoreNotFound(p.Delete(context.Background(), object)))
	}
}

func (p *policed) generations(t *testing.T) [2]int64 {
	t.Helper()
	must(t, p.Get(t.Context(), client.ObjectKeyFromObject(p.free), p.free))
	must(t, p.Get(t.Context(), client.ObjectKeyFromObject(p.refused), p.refused))
	return [2]int64{p.free.Generation, p.refused.Generation}
}

// rests fails if the component makes a request when the others have ended, if a definition is written, or if users cannot
// create an instance.
func (p *policed) rests(t *testing.T, before [2]int64) {
	t.Helper()
	staysAtRest(t, p.Requests, func() {
		for i := range 10 {
			if err := p.Create(t.Context(), instanceOf(p.free, "theirs"), client.DryRunAll); err != nil {
				t.Fatalf("creation %d: %v", i, err)
			}
		}
	})
	if now := p.generations(t); now != before {
		t.Errorf("the definitions were written: generations %v, before %v", now, before)
	}
}

// A definition that a policy protects blocks the deletion of the component with the words of the policy. The component
// rests, nothing is fenced off, and the next change of the definition is noticed at once.
func TestDeletionThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	p := police(t)
	before := p.generations(t)
	must(t, p.Delete(t.Context(), p.assembly))
	eventually(t, "it is not blocked", says(p, p.assembly, "DeletionBlocked", policyWords))
	p.rests(t, before)
	p.lift(t)
	eventually(t, "the policy is still in force", func(ctx context.Context) error { return p.touch(ctx) })
	eventually(t, "it is not deleted", gone(p, p.assembly, p.free, p.refused))
}

// The same for an upgrade that drops the type.
func TestUpgradeThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	p := police(t)
	before := p.generations(t)
	p.assembly.SetObjects(definition(p.free.Spec.Group, "ashes", "Ash", "v1.6.1"))
	must(t, p.Update(t.Context(), p.assembly))
	eventually(t, "it is not blocked", says(p, p.assembly, "Processing", policyWords))
	p.rests(t, before)
	p.lift(t)
	eventually(t, "the policy is still in force", func(ctx context.Context) error { return p.touch(ctx) })
	eventually(t, "it is not ready", isReady(p, p.assembly))
	must(t, gone(p, p.refused)(t.Context()))
}

// A deletion that is blocked by instances of others goes on when the definition in the cluster says that they do not
// matter. An APIService whose server does not answer does not block.
func TestOverrideWhileDeleting(t *testing.T) {
	controlplanetest.Real(t, "an APIService has to name another API server")
	t.Parallel()
	home := plane.Namespace(t)
	c := crdClient(t)
	d := definition(home+".example.com", "elms", "Elm", "v1")
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.metrics." + home + ".example.com"},
		"spec": map[string]any{
			"group": "metrics." + home + ".example.com", "version": "v1", "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": home, "name": "nowhere"},
		},
	}}
	assembly := resources.NewAssembly(home, "park", d, service)
	startOperator(t, home, resources.AssemblyGenerator(), options{})
	must(t, c.Create(t.Context(), assembly))
	eventually(t, "an instance cannot be created", func(ctx context.Context) error {
		return c.Create(ctx, instanceOf(d, "theirs"))
	})
	eventually(t, "the APIService is not created", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKeyFromObject(service), service)
	})
	must(t, c.Delete(t.Context(), assembly))
	eventually(t, "it is not blocked", says(c, assembly, "DeletionBlocked", "in use by Elm theirs"))
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"espalier.dev/foreign-instances":"ignore"}}}`))
	must(t, c.Patch(t.Context(), d.DeepCopy(), patch))
	begin := time.Now()
	eventually(t, "it is not deleted", gone(c, assembly, d, service))
	t.Logf("deleted after %v", time.Since(begin))
}
