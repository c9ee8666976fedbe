// Package config has what a cluster needs to know before the operator runs: the definitions of its types, and its
// roles. "go generate ./..." writes all of it: crd/ from the types of the API, the rest from the trees.
package config

import (
	"embed"
	"fmt"
	"io/fs"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate controller-gen object crd paths=../api/... output:crd:dir=crd
//go:generate go run ./generate

//go:embed crd */rbac
var files embed.FS

// CRDs returns the definitions of the types of the operator.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return decode[apiextensionsv1.CustomResourceDefinition]("crd/*.yaml")
}

// Roles returns the roles of the operator: what its trees need.
func Roles() ([]*rbacv1.ClusterRole, error) {
	return decode[rbacv1.ClusterRole]("*/rbac/role.yaml")
}

// decode returns the objects in the files that match the pattern, one in each.
func decode[T any](pattern string) ([]*T, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	var objects []*T
	for _, name := range names {
		manifest, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		object := new(T)
		if err := yaml.UnmarshalStrict(manifest, object); err != nil {
			return nil, fmt.Errorf("unable to decode %s: %w", name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
