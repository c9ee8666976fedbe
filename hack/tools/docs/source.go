package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package whose doc comments are read.
type source struct {
	// folder is the folder of the package in the module.
	folder string
	pkg    *doc.Package
	files  *token.FileSet
}

// load reads a package of the module in root, with its examples.
func load(root, folder string) (*source, error) {
	// The pages should not depend on the machine they are made on.
	target := build.Default
	target.GOOS, target.GOARCH = "linux", "amd64"
	found, err := target.ImportDir(filepath.Join(root, folder), 0)
	if err != nil {
		return nil, fmt.Errorf("could not find the package: %w", err)
	}
	s := &source{folder: folder, files: token.NewFileSet()}
	var parsed []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.TestGoFiles, found.XTestGoFiles) {
		f, err := parser.ParseFile(s.files, filepath.Join(root, folder, name), nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("could not read the package: %w", err)
		}
		parsed = append(parsed, f)
	}
	if s.pkg, err = doc.NewFromFiles(s.files, parsed, folder); err != nil {
		return nil, fmt.Errorf("could not read the doc comments: %w", err)
	}
	return s, nil
}

// markdown returns a doc comment of the package as Markdown. But for headings, the text of a comment is Markdown.
func (s *source) markdown(text string) string {
	printer := s.pkg.Printer()
	printer.TextWidth = 120
	plain := "\n" + string(printer.Text(s.pkg.Parser().Parse(text)))
	return strings.TrimSpace(strings.ReplaceAll(plain, "\n# ", "\n## "))
}
