// Command generate writes what is derived from the tree: the role of the operator, for the kustomization and for the
// chart, and a picture of the tree. "make manifests" runs it.
package main

import (
	"os"
	"path/filepath"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/controller"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/reconcilers"
)

func main() {
	manifests.Main(".", derive)
}

// derive returns the files below the folder of the project.
func derive(project string) (manifests.Files, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(project, "config", "crd"))}
	files, err := g.Operator("placeholder-operator", controller.New(reconcilers.Config{}))
	if err != nil {
		return nil, err
	}
	definition, err := os.ReadFile(filepath.Join(project, "config", "crd", "group.example.test_placeholders.yaml"))
	if err != nil {
		return nil, err
	}
	//scaffold:if webhooks
	webhooks, err := os.ReadFile(filepath.Join(project, "config", "webhook", "manifests.yaml"))
	if err != nil {
		return nil, err
	}
	//scaffold:end
	return manifests.Files{
		"config/" + manifests.TreeFile: files[manifests.TreeFile],
		"config/" + manifests.RoleFile: files[manifests.RoleFile],
		"chart/files/role.yaml":        files[manifests.RoleFile],
		"chart/files/crd.yaml":         definition,
		//scaffold:if webhooks
		"chart/files/webhooks.yaml": webhooks,
		//scaffold:end
	}, nil
}
