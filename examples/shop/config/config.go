// Package config has what a cluster needs to know before the operator runs: the definition of the Shop, the role of the
// operator, and its webhooks. "make generate" writes crd/ from the types of the API, webhook/ from the markers of the
// webhooks, and tree.txt and rbac/role.yaml from the tree.
package config

import (
	"bytes"
	_ "embed"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate controller-gen crd paths=../api/... output:crd:dir=crd
//go:generate controller-gen webhook paths=../webhooks output:webhook:dir=webhook
//go:generate go run ./generate

var (
	//go:embed crd/shop.example.com_shops.yaml
	crd []byte
	//go:embed rbac/role.yaml
	role []byte
	//go:embed webhook/manifests.yaml
	webhooks []byte
)

// CRD returns the definition of the Shop.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	return decode[apiextensionsv1.CustomResourceDefinition](crd)
}

// Role returns the role of the operator: what its tree needs.
func Role() (*rbacv1.ClusterRole, error) {
	return decode[rbacv1.ClusterRole](role)
}

// Webhooks returns the configurations of the webhooks, for an operator that is reached through a Service. The
// certificate is added by the installation.
func Webhooks() (
	*admissionregistrationv1.MutatingWebhookConfiguration,
	*admissionregistrationv1.ValidatingWebhookConfiguration,
	error,
) {
	parts := bytes.Split(bytes.TrimPrefix(webhooks, []byte("---\n")), []byte("\n---\n"))
	if len(parts) != 2 {
		return nil, nil, fmt.Errorf("there are %d manifests of webhooks, not two", len(parts))
	}
	mutating, err := decode[admissionregistrationv1.MutatingWebhookConfiguration](parts[0])
	if err != nil {
		return nil, nil, err
	}
	validating, err := decode[admissionregistrationv1.ValidatingWebhookConfiguration](parts[1])
	return mutating, validating, err
}

func decode[T any](manifest []byte) (*T, error) {
	object := new(T)
	if err := yaml.UnmarshalStrict(manifest, object); err != nil {
		return nil, fmt.Errorf("unable to decode the manifest of a %T: %w", object, err)
	}
	return object, nil
}
