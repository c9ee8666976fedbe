// Command generate writes what can be derived from the trees of the tenant operator: its roles, and a picture of the
// trees. It is run in the folder of package config.
package main

import (
	"fmt"
	"os"
	"path/filepath"

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
	tenants := controller.New(reconcilers.Config{}, options).Describe()
	registry := controller.NewRegistry(reconcilers.Config{}, options).Describe()
	// The nodes of the registry read in the whole cluster. Its root writes in one namespace, and needs a role there.
	tenants.Nodes = append(tenants.Nodes, registry.Nodes...)
	registry.Nodes = nil
	needs, err := tenants.PolicyRules(scheme, nil)
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
			Rules: needs,
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
