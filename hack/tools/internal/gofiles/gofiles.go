// Package gofiles reads the Go files below a folder.
package gofiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Walk calls visit with each Go file below root, in the order of their paths, except those in folders that are called
// testdata or begin with a dot. Paths are seen from root, and have slashes. It ends at the first error.
func Walk(root string, visit func(path string, source []byte) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && path != "." && (name == "testdata" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		return visit(path, source)
	})
}
