// Command shop shows the operator for shops at work: alone, with several replicas, and with plugins. The script
// examples/shop/plugins/build puts these into the folder plugins beside the program.
package main

import (
	shop "github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	plugins "github.com/espalier-dev/espalier/examples/shop/plugins/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(shop.Demo, shop.Replicas, plugins.New("")) }
