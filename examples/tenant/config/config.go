// Package config has what a cluster needs to know before the operator runs: the definition of the Tenant and the roles of the
// operator. "make generate" writes crd/ from the types of the API, and rbac/role.yaml and tree.txt from the tree.
package config

import (
	_ "embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate controller-gen crd paths=../api/... output:crd:dir=crd
//go:generate controller-gen webhook paths=../controller output:webhook:dir=webhook
//go:generate go run ./generate

var (
	//go:embed crd/tenancy.example.com_tenants.yaml
	crd []byte
	//go:embed rbac/role.yaml
	role []byte
	//go:embed rbac/bind_role.yaml
	bindRole []byte
)

// CRD returns the definition of the Tenant.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	return decode[apiextensionsv1.CustomResourceDefinition](crd)
}

// Roles returns the roles of the operator: what its tree needs, and which roles it may give to members.
func Roles() ([]*rbacv1.ClusterRole, error) {
	needs, err := decode[rbacv1.ClusterRole](role)
	if err != nil {
		return nil, err
	}
	gives, err := decode[rbacv1.ClusterRole](bindRole)
	if err != nil {
		return nil, err
	}
	return []*rbacv1.ClusterRole{needs, gives}, nil
}

func decode[T any](manifest []byte) (*T, error) {
	object := new(T)
	if err := yaml.UnmarshalStrict(manifest, object); err != nil {
		return nil, fmt.Errorf("unable to decode the manifest of a %T: %w", object, err)
	}
	return object, nil
}
