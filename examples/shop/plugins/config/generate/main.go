// Command generate writes what can be derived from the tree of the shop operator with plugins: its role, and a picture
// of the tree.
package main

import (
	"os"
	"path/filepath"

	"github.com/espalier-dev/espalier/examples/shop/controller"
	"github.com/espalier-dev/espalier/examples/shop/plugins/parts"
	"github.com/espalier-dev/espalier/manifests"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/reconcilers"
)

//go:generate go run .

func main() {
	manifests.Main("..", derive)
}

// derive returns what is derived, with the definition of the Shop beside the folder of this module.
func derive(config string) (manifests.Files, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	g := manifests.Generator{Scheme: scheme, Definitions: os.DirFS(filepath.Join(config, "../../config/crd"))}
	host := &plugins.Host{}
	return g.Operator("shop-operator-plugins",
		controller.New(reconcilers.Config{}, nil, 0, parts.Database(host), parts.Queue(host)))
}
