// Command generate writes what can be derived from the trees of the tenant operator: its roles, and a picture of the
// trees. It is run in the folder of package config.
package main

import (
	"os"
	"path/filepath"

	"github.com/espalier-dev/espalier/examples/tenant/controller"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"
)

func main() {
	manifests.Main(".", derive)
}

// derive returns what is derived, with the definitions in the folder config.
func derive(config string) (manifests.Files, error) {
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
	defaults := reconcilers.Describe(controller.Defaults(reconcilers.Config{}, nil))

	g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(config, "crd"))}
	needs, err := g.ClusterRole("tenant-operator", tenants)
	if err != nil {
		return nil, err
	}
	writes, err := g.Role("", "tenant-operator-registry", registry)
	if err != nil {
		return nil, err
	}
	hub, err := g.ClusterRole("tenant-operator-hub", defaults)
	if err != nil {
		return nil, err
	}
	return manifests.Files{
		manifests.TreeFile:        []byte(controller.Describe(options)),
		manifests.RoleFile:        needs,
		"rbac/registry_role.yaml": writes,
		"rbac/hub_role.yaml":      hub,
	}, nil
}
