// Command deliveries shows an operator whose replicas share its resources, and two operators at work whose objects
// come from others: one delivers software, on two clusters, and one has plugins. The script examples/plugins/build puts
// these into the folder plugins beside the program.
package main

import (
	"github.com/espalier-dev/espalier/examples/demo/internal/inprocess"
	delivery "github.com/espalier-dev/espalier/examples/platform/delivery/demo/scenario"
	plugins "github.com/espalier-dev/espalier/examples/plugins/demo/scenario"
	shop "github.com/espalier-dev/espalier/examples/shop/demo/scenario"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

func main() { demo.Main(inprocess.Start, shop.Demo, delivery.Demo, plugins.New("")) }
