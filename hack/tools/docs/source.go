package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
)

// source is a package whose doc comments are read.
type source struct {
	// folder is the folder of the package in the module.
	folder string
	pkg    *doc.Package
	files  *token.FileSet
	// contents are those of the files, by name.
	contents map[string][]byte
}

// load reads a package of the module in root.
func load(root, folder string) (*source, error) {
	// The pages should not depend on the machine they are made on.
	target := build.Default
	target.GOOS, target.GOARCH = "linux", "amd64"
	found, err := target.ImportDir(filepath.Join(root, folder), 0)
	if err != nil {
		return nil, fmt.Errorf("could not find the package: %w", err)
	}
	s := &source{folder: folder, files: token.NewFileSet(), contents: map[string][]byte{}}
	var parsed []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.TestGoFiles, found.XTestGoFiles) {
		file := filepath.Join(root, folder, name)
		if s.contents[file], err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("could not read the package: %w", err)
		}
		f, err := parser.ParseFile(s.files, file, s.contents[file], parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("could not read the package: %w", err)
		}
		parsed = append(parsed, f)
	}
	if s.pkg, err = doc.NewFromFiles(s.files, parsed, modulePath+"/"+folder); err != nil {
		return nil, fmt.Errorf("could not read the doc comments: %w", err)
	}
	return s, nil
}

// link is a link to the reference of the package.
func (s *source) link() string {
	return "[" + s.pkg.Name + "](" + referenceURL + "/" + s.pkg.ImportPath + ")"
}
