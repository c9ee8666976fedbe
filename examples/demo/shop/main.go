// Command shop shows the operator for shops at work: alone, with several replicas, and with plugins. The script
// examples/shop/plugins/build puts these into the folder plugins beside the program.
package main

import (
	"github.com/espalier-dev/espalier/examples/demo/internal/inprocess"
	shop "github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	plugins "github.com/espalier-dev/espalier/examples/shop/plugins/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(inprocess.Start, shop.Demo, shop.Replicas, plugins.New("")) }
