package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/gofiles"
)

// testedPackage is a package that has tests.
type testedPackage struct {
	// module and folder are seen from the folder of the repository, which is ".".
	module, folder string
	// tests are the names of its tests, fuzz tests and examples, and allocates those of them that show less with the
	// race detector.
	tests, allocates []string
}

// inModule returns the package as an argument for go test in the folder of its module.
func (p testedPackage) inModule() string {
	if p.module == "." {
		return "./" + strings.TrimPrefix(p.folder, ".")
	}
	return "." + strings.TrimPrefix(p.folder, p.module)
}

// list returns the packages with tests of all modules below a folder, in the order of their folders.
func list(root string) (packages []testedPackage, err error) {
	byFolder := map[string]testedPackage{}
	err = gofiles.Walk(root, func(file string, source []byte) error {
		folder := path.Dir(file)
		built, err := build.Default.MatchFile(filepath.Join(root, folder), path.Base(file))
		if !built || err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := byFolder[folder]
		p.module, p.folder = moduleOf(root, folder), folder
		p.add(syntax)
		byFolder[folder] = p
		return nil
	})
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		if p := byFolder[folder]; len(p.tests) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, err
}

// moduleOf returns the module of a folder.
func moduleOf(root, folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, err := os.Stat(filepath.Join(root, folder, "go.mod")); err == nil {
			break
		}
	}
	return folder
}

// add adds the tests of a file.
func (p *testedPackage) add(file *ast.File) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		p.tests = append(p.tests, function.Name.Name)
		ast.Inspect(function, func(node ast.Node) bool {
			name, ok := node.(*ast.Ident)
			if ok && (name.Name == "AllocsPerRun" || name.Name == "raceDetector") {
				p.allocates = append(p.allocates, function.Name.Name)
			}
			return true
		})
	}
	p.allocates = slices.Compact(p.allocates)
}

// isTest reports whether go test runs a function of this name. TestMain runs the others.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return name != "TestMain"
		}
	}
	return false
}
