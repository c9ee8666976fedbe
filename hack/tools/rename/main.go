// Command rename moves code that uses this module to the names that the module has now: rename FOLDER...
//
// It rewrites the Go files of the folders and of all folders below, but for those named vendor, and those that begin
// with a dot or an underscore. It changes imports, names of packages before a dot in code and comments, the names
// that table.go lists, and the paths of modules in go.mod files. It reads no types. So it leaves a name alone that
// another name hides, and it gives an import a local name where the new name of the package is taken: its old name
// or, if that is taken too, the old name and "pkg".
//
//	import component "github.com/espalier-dev/espalier/generator"
//
// It prints the path of each file that it changed. A file that has no valid Go code is an error, and stays as it is.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rename FOLDER...")
		os.Exit(2)
	}
	var errs []error
	for _, folder := range os.Args[1:] {
		changed, err := renameFolder(folder)
		for _, path := range changed {
			fmt.Println(path)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
}

// renameFolder rewrites the files of a folder, and returns the paths of those that it changed. A file that cannot be
// rewritten does not stop it.
func renameFolder(root string) (changed []string, err error) {
	taken := map[string]map[string]bool{}
	var errs []error
	walkErr := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && skipped(entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		did, err := renameFile(path, taken)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		if did {
			changed = append(changed, path)
		}
		return nil
	})
	return changed, errors.Join(append(errs, walkErr)...)
}

func skipped(folder string) bool {
	return folder == "vendor" || strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

// renameFile rewrites a file, if it is one to rewrite. The names that the packages of folders declare are kept in
// taken.
func renameFile(path string, taken map[string]map[string]bool) (changed bool, err error) {
	var rewrite func(source []byte) ([]byte, error)
	switch {
	case filepath.Base(path) == "go.mod":
		rewrite = func(source []byte) ([]byte, error) { return renameModules(source), nil }
	case filepath.Ext(path) == ".go":
		rewrite = func(source []byte) ([]byte, error) {
			folder := filepath.Dir(path)
			if taken[folder] == nil {
				taken[folder] = declared(folder)
			}
			return renameSource(source, taken[folder])
		}
	default:
		return false, nil
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	after, err := rewrite(before)
	if err != nil || bytes.Equal(before, after) {
		return false, err
	}
	return true, os.WriteFile(path, after, 0o644)
}
