// Command generate writes what can be derived from the tree of the shop operator: its role, and a picture of the
// tree. It is run in the folder of package config.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/examples/shop/controller"
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
	tree := controller.New(reconcilers.Config{}, nil, 0).Describe()
	rules, err := tree.PolicyRules(scheme, nil)
	if err != nil {
		return nil, err
	}
	manifest, err := yaml.Marshal(rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop-operator"},
		Rules:      rules,
	})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"tree.txt":       []byte(tree.String()),
		"rbac/role.yaml": append([]byte("# Derived from the tree. DO NOT EDIT: run make generate.\n"), manifest...),
	}, nil
}
