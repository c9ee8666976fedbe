// Package config has what a cluster needs to know before the operator runs: the definition of the Shop, and the roles
// of the operator. "make generate" writes crd/ from the types of the API, tree.txt and rbac/role.yaml from the tree.
package config

import (
	_ "embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate controller-gen object crd paths=../api/... output:crd:dir=crd
//go:generate go run ./generate

var (
	//go:embed crd/market.example.com_shops.yaml
	crd []byte
	//go:embed rbac/role.yaml
	role []byte
	//go:embed rbac/advertise_role.yaml
	advertise []byte
)

// CRD returns the definition of the Shop.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	return decode[apiextensionsv1.CustomResourceDefinition](crd)
}

// Roles returns the roles of the operator: what its tree needs, and what it needs to show which capabilities there are.
func Roles() ([]*rbacv1.ClusterRole, error) {
	needs, err := decode[rbacv1.ClusterRole](role)
	if err != nil {
		return nil, err
	}
	shows, err := decode[rbacv1.ClusterRole](advertise)
	if err != nil {
		return nil, err
	}
	return []*rbacv1.ClusterRole{needs, shows}, nil
}

func decode[T any](manifest []byte) (*T, error) {
	object := new(T)
	if err := yaml.UnmarshalStrict(manifest, object); err != nil {
		return nil, fmt.Errorf("unable to decode the manifest of a %T: %w", object, err)
	}
	return object, nil
}
