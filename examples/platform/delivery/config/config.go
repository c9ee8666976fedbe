// Package config has what a cluster needs to know before the operator runs: the definitions of its types, and its
// roles. "go generate ./..." writes all of it: crd/ from the types of the API, the rest from the trees.
package config

import "embed"

//go:generate controller-gen object crd paths=../api/... output:crd:dir=crd
//go:generate go run ./generate

// Files has the manifests.
//
//go:embed crd */rbac
var Files embed.FS
