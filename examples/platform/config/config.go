// Package config has what a cluster needs to know before the operator runs: the definition of the Platform, and the
// role of the operator. "make generate" writes crd/ from the types of the API, and tree.txt and rbac/role.yaml from the
// tree.
package config

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:generate controller-gen crd paths=../api/... output:crd:dir=crd
//go:generate go run ./generate

// Files has the manifests.
//
//go:embed crd rbac/role.yaml
var Files embed.FS

// CRD returns the definition of the Platform.
func CRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	manifest, err := Files.ReadFile("crd/platform.example.com_platforms.yaml")
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(manifest, definition); err != nil {
		return nil, fmt.Errorf("unable to decode the definition of the Platform: %w", err)
	}
	return definition, nil
}
