// Command generate writes what can be derived from the trees of the tenant operator: its roles, and a picture of the
// trees. It is run in the folder of package config.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/reconcilers"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := derive()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// derive returns the content of the files by their names.
func derive() (map[string][]byte, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	var options controller.Options
	tenants, err := controller.New(reconcilers.Config{}, options).Describe().PolicyRules(scheme, nil)
	if err != nil {
		return nil, err
	}
	registry := controller.NewRegistry(reconcilers.Config{}, options).Describe()
	// The tree looks at the cluster. The root writes in one namespace, so what it needs is a role of that namespace.
	tree := registry
	tree.Uses, registry.Nodes = nil, nil
	looks, err := tree.PolicyRules(scheme, nil)
	if err != nil {
		return nil, err
	}
	writes, err := registry.PolicyRules(scheme, nil)
	if err != nil {
		return nil, err
	}

	defaults, err := reconcilers.Describe(controller.Defaults(reconcilers.Config{}, nil)).PolicyRules(scheme, nil)
	if err != nil {
		return nil, err
	}

	files := map[string][]byte{"tree.txt": []byte(controller.Describe(options))}
	for name, role := range map[string]any{
		"rbac/role.yaml": rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: "tenant-operator"},
			Rules: merge(tenants, looks),
		},
		"rbac/registry_role.yaml": rbacv1.Role{
			TypeMeta: typeMeta("Role"), ObjectMeta: metav1.ObjectMeta{Name: "tenant-operator-registry"}, Rules: writes,
		},
		"rbac/hub_role.yaml": rbacv1.ClusterRole{
			TypeMeta: typeMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: "tenant-operator-hub"},
			Rules: defaults,
		},
	} {
		manifest, err := yaml.Marshal(role)
		if err != nil {
			return nil, err
		}
		files[name] = append([]byte("# Derived from the tree. DO NOT EDIT: run make generate.\n"), manifest...)
	}
	return files, nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// merge adds rules to others of the kind that a tree derives: one for each resource.
func merge(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, rule := range more {
		i := slices.IndexFunc(rules, func(known rbacv1.PolicyRule) bool {
			return slices.Equal(known.APIGroups, rule.APIGroups) && slices.Equal(known.Resources, rule.Resources)
		})
		if i < 0 {
			rules = append(rules, rule)
			continue
		}
		for _, verb := range rule.Verbs {
			if !slices.Contains(rules[i].Verbs, verb) {
				rules[i].Verbs = append(rules[i].Verbs, verb)
			}
		}
	}
	return rules
}
