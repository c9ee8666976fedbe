// Package golist lists the packages of a module.
package golist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Package is what "go list" reports about a package.
type Package struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	// Imports are those of the package, TestImports those of its own tests, XTestImports those of the tests outside it.
	Imports, TestImports, XTestImports []string
	// Deps are all packages that the package depends on.
	Deps []string
}

// Packages returns the path of the module in a folder, and its packages.
func Packages(ctx context.Context, dir string) (module string, packages []Package, err error) {
	path, err := goList(ctx, dir, "-m")
	if err != nil {
		return "", nil, err
	}
	fields := "-json=ImportPath,Dir,Name,GoFiles,Imports,TestImports,XTestImports,Deps"
	list, err := goList(ctx, dir, fields, "./...")
	if err != nil {
		return "", nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(list)); decoder.More(); {
		var p Package
		if err := decoder.Decode(&p); err != nil {
			return "", nil, fmt.Errorf("could not read the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
	return string(bytes.TrimSpace(path)), packages, nil
}

func goList(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", strings.Join(cmd.Args, " "), dir, err)
	}
	return out, nil
}
