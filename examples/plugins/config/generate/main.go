// Command generate writes what can be derived from the tree of the market operator: its role, and a picture of the
// tree. It is run in the folder of package config.
package main

import (
	"os"
	"path/filepath"

	"github.com/espalier-dev/espalier/examples/plugins/controller"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/plugins"
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
	g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(config, "crd"))}
	return g.Operator("market-operator", controller.New(reconcilers.Config{}, &plugins.Host{}))
}
