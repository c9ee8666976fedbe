package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/gofiles"
)

// testPackage is a package with its tests. A folder has up to two: a package, and that of its external tests.
type testPackage struct {
	// folder is seen from the root, "." for the root itself.
	folder string
	set    *token.FileSet
	// files are those of the package in the order of their paths, which are seen from the root, and tests those of them
	// that are test files.
	files, tests []*ast.File
	// types and info say what identifiers stand for, if the package declares it or if it is an imported package. What
	// other packages declare is not known.
	types *types.Package
	info  *types.Info
}

// load reads the packages below a folder that have test files.
func load(root string) (packages []*testPackage, err error) {
	set := token.NewFileSet()
	byName := map[string]*testPackage{}
	var all []*testPackage
	err = gofiles.Walk(root, func(file string, source []byte) error {
		syntax, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := path.Dir(file) + " " + syntax.Name.Name
		p := byName[name]
		if p == nil {
			p = &testPackage{folder: path.Dir(file), set: set}
			byName[name], all = p, append(all, p)
		}
		p.files = append(p.files, syntax)
		if strings.HasSuffix(file, "_test.go") {
			p.tests = append(p.tests, syntax)
		}
		return nil
	})
	for _, p := range all {
		if len(p.tests) > 0 {
			p.resolve()
			packages = append(packages, p)
		}
	}
	return packages, err
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
func (p *testPackage) qualified(expression ast.Node) (path, name string) {
	if selector, ok := expression.(*ast.SelectorExpr); ok {
		if x, ok := selector.X.(*ast.Ident); ok {
			if imported, ok := p.info.Uses[x].(*types.PkgName); ok {
				return imported.Imported().Path(), selector.Sel.Name
			}
		}
	}
	return "", ""
}
