package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// testPackage is a package that has test files. A folder has up to two: a package, and that of its external tests.
type testPackage struct {
	// folder is seen from the root, "." for the root itself.
	folder string
	set    *token.FileSet
	// files are those of the package, tests and others, in the order of their paths, which are seen from the root.
	files []*ast.File
	// types and info say what identifiers stand for, if the package declares it or if it is an imported package. What
	// other packages declare is not known.
	types *types.Package
	info  *types.Info
}

// load reads the packages below a folder that have test files, in the order of their folders.
func load(root string) (packages []*testPackage, err error) {
	folders := map[string][]string{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && path != root && (name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !entry.IsDir() && filepath.Ext(name) == ".go":
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(rel))
			folders[folder] = append(folders[folder], name)
		}
		return nil
	})
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if slices.ContainsFunc(folders[folder], isTest) {
			found, failure := loadFolder(root, folder, folders[folder])
			packages, err = append(packages, found...), errors.Join(err, failure)
		}
	}
	return packages, err
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

func loadFolder(root, folder string, names []string) (packages []*testPackage, err error) {
	set := token.NewFileSet()
	byName := map[string][]*ast.File{}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(folder), name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, path.Join(folder, name), source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		byName[file.Name.Name] = append(byName[file.Name.Name], file)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		p := &testPackage{folder: folder, set: set, files: byName[name]}
		if len(p.testFiles()) > 0 {
			p.resolve()
			packages = append(packages, p)
		}
	}
	return packages, nil
}

func (p *testPackage) testFiles() (files []*ast.File) {
	for _, file := range p.files {
		if isTest(p.set.Position(file.Package).Filename) {
			files = append(files, file)
		}
	}
	return files
}

// resolve finds out what the identifiers stand for. Imported packages are not read, so nearly every file has errors, of
// which go/types makes the best.
func (p *testPackage) resolve() {
	p.info = &types.Info{
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{},
	}
	config := types.Config{Importer: notRead{}, Error: func(error) {}, FakeImportC: true}
	p.types, _ = config.Check(p.folder, p.set, p.files, p.info)
}

// notRead imports packages of which nothing but the path is known, and what their name is most likely.
type notRead struct{}

// Import implements [types.Importer].
func (notRead) Import(imported string) (*types.Package, error) {
	p := types.NewPackage(imported, path.Base(imported))
	p.MarkComplete()
	return p, nil
}

// qualified returns the path of the package and the name, if an expression is a name of an imported package.
func (p *testPackage) qualified(expression ast.Expr) (path, name string) {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := selector.X.(*ast.Ident); ok {
		if imported, ok := p.info.Uses[x].(*types.PkgName); ok {
			return imported.Imported().Path(), selector.Sel.Name
		}
	}
	return "", ""
}

// servers are the imports, or the ends of them, of tests that wait for a server.
var servers = []string{"net/http/httptest", "/testenv/controlplane/controlplanetest"}

// usesServer says whether a test file imports what starts servers.
func (p *testPackage) usesServer() bool {
	for _, file := range p.testFiles() {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			starts := func(server string) bool { return strings.HasSuffix(imported, server) }
			if err == nil && slices.ContainsFunc(servers, starts) {
				return true
			}
		}
	}
	return false
}
