// Command generate writes what can be derived from the trees of the operator: for each its role, and a picture. It is
// run in the folder of package config.
package main

import (
	"os"
	"path"
	"path/filepath"

	"github.com/espalier-dev/espalier/examples/platform/delivery/controller"
	"github.com/espalier-dev/espalier/generator"
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
	g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(config, "crd"))}
	var nothing generator.GeneratorFunc // a tree is the same for all generators
	files := manifests.Files{}
	for name, root := range map[string]reconcilers.Describer{
		"monitor": controller.NewMonitor(reconcilers.Config{}, nothing),
		"agent":   controller.NewAgent(reconcilers.Config{}, nothing),
	} {
		derived, err := g.Operator(name+"-operator", root)
		if err != nil {
			return nil, err
		}
		for file, content := range derived {
			files[path.Join(name, file)] = content
		}
	}
	return files, nil
}
