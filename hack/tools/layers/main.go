// Command layers checks that the packages of a module lie in layers: a package imports packages below it, never one
// beside or above it, and never one of another module of the repository. Packages also must not depend on what the
// table forbids. It takes the folder of the module to check, prints each violation on a line, and exits with 1 if there
// is any.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layers MODULE-FOLDER")
		os.Exit(2)
	}
	module, packages, err := load(context.Background(), os.Args[1])
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

// goPackage is what "go list" reports about a package.
type goPackage struct {
	ImportPath string
	// Imports are those of the package, TestImports those of its own tests, XTestImports those of the tests outside it.
	Imports, TestImports, XTestImports []string
	// Deps are all packages that the package depends on.
	Deps []string
}

// load lists the packages of the module in dir.
func load(ctx context.Context, dir string) (module string, packages []goPackage, err error) {
	path, err := golang(ctx, dir, "list", "-m")
	if err != nil {
		return "", nil, err
	}
	list, err := golang(ctx, dir, "list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	if err != nil {
		return "", nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return string(bytes.TrimSpace(path)), packages, nil
		}
		if err != nil {
			return "", nil, fmt.Errorf("could not read the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

func golang(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}
