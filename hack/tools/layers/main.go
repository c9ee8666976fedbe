// Command layers checks that the packages of a module lie in layers: a package imports packages below it, never one
// beside or above it, and never one of another module of the repository. Packages also must not depend on what the
// table forbids. It takes the folder of the module to check, prints each violation on a line, and exits with 1 if there
// is any.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layers MODULE-FOLDER")
		os.Exit(2)
	}
	module, packages, err := golist.Packages(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "layers:", err)
		os.Exit(2)
	}
	violations := espalier.check(module, packages)
	for _, v := range violations {
		fmt.Println(v)
	}
	if len(violations) > 0 {
		os.Exit(1)
	}
}
