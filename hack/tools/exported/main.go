// Command exported writes what the public packages of the repository export into text files, so that a change of it is
// seen: exported REPOSITORY MODULE-FOLDER...
//
// The folder api of the repository gets a file for each public package, named after its path. Packages of commands, and
// those below the folders internal, examples, hack and test, are not public. A file has a line for each declaration,
// each field and each method, in the order of their texts. Files of packages that are gone are removed.
//
// It exits with 1 if there are more public packages than maxInRoot and maxInAll.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

const (
	// maxInRoot is how many public packages the module at the root may have, and maxInAll is how many all modules may
	// have together.
	//
	// Package sharding is one of them: it is what a main function needs that runs the roots in a ring of processes, and
	// what no other operator needs.
	maxInRoot = 25
	maxInAll  = 32
)

// module is the path of the module at the root, which begins the paths of all modules.
const module = "github.com/espalier-dev/espalier"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: exported REPOSITORY MODULE-FOLDER...")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "exported:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, repository string, folders []string) error {
	files := map[string]string{}
	root := 0
	for _, folder := range folders {
		path, packages, err := golist.Packages(ctx, filepath.Join(repository, folder))
		if err != nil {
			return err
		}
		for _, p := range packages {
			name, public := fileOf(p)
			if !public {
				continue
			}
			if files[name], err = declarations(p); err != nil {
				return err
			}
			if path == module {
				root++
			}
		}
	}
	if err := write(filepath.Join(repository, "api"), files); err != nil {
		return err
	}
	return tooMany(root, len(files))
}

func tooMany(root, all int) error {
	var errs []error
	if root > maxInRoot {
		errs = append(errs,
			fmt.Errorf("the module at the root has %d public packages, want at most %d", root, maxInRoot))
	}
	if all > maxInAll {
		errs = append(errs, fmt.Errorf("all modules have %d public packages, want at most %d", all, maxInAll))
	}
	return errors.Join(errs...)
}

// fileOf returns the name of the file of a package, and false if the package is not public.
func fileOf(p golist.Package) (string, bool) {
	relative := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
	parts := strings.Split(relative, "/")
	notPublic := p.Name == "main" || len(p.GoFiles) == 0 || slices.Contains(parts, "internal") ||
		slices.Contains([]string{"examples", "hack", "test"}, parts[0])
	if relative == "" {
		parts = []string{p.Name}
	}
	return strings.Join(parts, ".") + ".txt", !notPublic
}

// write makes the folder have the files, and no others.
func write(folder string, files map[string]string) error {
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
