package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The files here are what controller-gen and package manifests make of the project that is the template. They are
// written anew, so that they are what these make of the new project, where names decide orders and line breaks.

// deriveDefinition returns the definition of the kind.
func (o Options) deriveDefinition(text string) ([]byte, error) {
	definition := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &definition); err != nil {
		return nil, fmt.Errorf("template of the definition: %w", err)
	}
	if !o.Namespaced {
		if err := o.makeClusterScoped(definition); err != nil {
			return nil, fmt.Errorf("template of the definition: %w", err)
		}
	}
	return document(definition)
}

// makeClusterScoped makes the definition that of a kind without namespaces, whose spec has one.
func (o Options) makeClusterScoped(definition map[string]any) error {
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	if err != nil {
		return err
	}
	if len(versions) != 1 {
		return fmt.Errorf("it has %d versions, not one", len(versions))
	}
	version, ok := versions[0].(map[string]any)
	if !ok {
		return fmt.Errorf("its version is a %T", versions[0])
	}
	what := "the pods run"
	if o.Component != "" {
		what = "the objects are"
	}
	spec := []string{"schema", "openAPIV3Schema", "properties", "spec"}
	namespace := map[string]any{
		"description": "Namespace is where " + what + ".",
		"type":        "string", "minLength": int64(1), "maxLength": int64(63),
	}
	required, _, err := unstructured.NestedStringSlice(version, append(spec, "required")...)
	if err != nil {
		return err
	}
	required = append(required, "namespace")
	slices.Sort(required)
	for _, set := range []error{
		unstructured.SetNestedMap(version, namespace, append(spec, "properties", "namespace")...),
		unstructured.SetNestedStringSlice(version, required, append(spec, "required")...),
		unstructured.SetNestedSlice(definition, versions, "spec", "versions"),
		unstructured.SetNestedField(definition, o.scope(), "spec", "scope"),
	} {
		if set != nil {
			return set
		}
	}
	return nil
}

// deriveRole returns the role of the operator, with its rules in the order of the new names. An operator that deploys
// nothing yet has no rights but for its own kind.
func (o Options) deriveRole(text string) ([]byte, error) {
	comment, _, ok := strings.Cut(text, "\n")
	if !ok {
		return nil, fmt.Errorf("template of the role: it has one line")
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
		return nil, fmt.Errorf("template of the role: %w", err)
	}
	if o.Component == "dummy" {
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return rule.APIGroups[0] != o.Group && rule.Resources[0] != "events"
		})
	}
	slices.SortFunc(role.Rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), strings.Compare(a.Resources[0], b.Resources[0]))
	})
	manifest, err := yaml.Marshal(role)
	return append([]byte(comment+"\n"), manifest...), err
}

// deriveWebhooks returns the configurations of those webhooks that the project has.
func (o Options) deriveWebhooks(text string) ([]byte, error) {
	var out []byte
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "---\n"), "\n---\n") {
		configuration := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(part), &configuration); err != nil {
			return nil, fmt.Errorf("template of the webhooks: %w", err)
		}
		if validating := configuration["kind"] == "ValidatingWebhookConfiguration"; validating && !o.Validating ||
			!validating && !o.Defaulting {
			continue
		}
		manifest, err := document(configuration)
		if err != nil {
			return nil, err
		}
		out = append(out, manifest...)
	}
	return out, nil
}

// document returns a document of YAML as controller-gen writes it.
func document(object map[string]any) ([]byte, error) {
	manifest, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte("---\n"), manifest}, nil), nil
}
