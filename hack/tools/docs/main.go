// Command docs writes the pages in docs that come from doc comments. It takes the folder of the module.
//
//   - docs/nodes has a page for each node of the packages in nodeFolders. A page shows the doc comment, the
//     fields and the examples.
//   - docs/annotations.md describes the annotations of package generator.
//   - docs/README.md lists all pages.
//
// A node without a doc comment, a field without one, or a node without a checked example is an error, and so is an
// annotation without a doc comment. Nothing is written then.
package main

import (
	"fmt"
	"os"
)

// modulePath is the import path of the module. Packages are named after their folders in it.
const modulePath = "github.com/espalier-dev/espalier"

// nodeFolders are the packages that have nodes. One that does not exist is left out.
var nodeFolders = []string{"reconcilers", "component", "feature"}

// annotationsFolder is the package whose constants are annotations.
const annotationsFolder = "generator"

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
