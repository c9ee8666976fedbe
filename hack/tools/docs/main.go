// Command docs writes a page for each node of package reconcilers into docs/nodes, and docs/README.md, which lists them. Both
// come from the doc comments and the examples of the package. It takes the folder of the module.
//
// A node without a doc comment, a field without one, or a node without a checked example is an error; nothing is written
// then.
package main

import (
	"fmt"
	"os"
)

// packagePath is the import path of the package, which lies in the folder packageFolder of its module.
const (
	packagePath   = "github.com/espalier-dev/espalier/reconcilers"
	packageFolder = "reconcilers"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docs MODULE-FOLDER")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}
