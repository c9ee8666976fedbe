package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
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

// modulesOf returns the modules of packages: that at the root first, since it has the most tests.
func modulesOf(packages []testedPackage) (modules []string) {
	for _, p := range packages {
		modules = append(modules, p.module)
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// list returns the packages with tests of all modules below a folder.
func list(ctx context.Context, root string) (packages []testedPackage, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	files, err := golist.Run(ctx, root,
		"git", "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	for _, file := range strings.Fields(string(files)) {
		if strings.Contains(file, "testdata") {
			continue
		}
		found, err := listModule(ctx, root, filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		packages = append(packages, found...)
	}
	slices.SortFunc(packages, func(a, b testedPackage) int { return cmp.Compare(a.folder, b.folder) })
	return packages, nil
}

func listModule(ctx context.Context, root, module string) (packages []testedPackage, err error) {
	out, err := golist.Run(ctx, filepath.Join(root, module),
		"go", "list", "-json=Dir,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var listed struct {
			Dir                       string
			TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&listed); err != nil {
			return nil, fmt.Errorf("could not read the output of go list in %s: %w", module, err)
		}
		folder, err := filepath.Rel(root, listed.Dir)
		if err != nil {
			return nil, err
		}
		p := testedPackage{module: module, folder: filepath.ToSlash(folder)}
		for _, file := range slices.Concat(listed.TestGoFiles, listed.XTestGoFiles) {
			path := filepath.Join(listed.Dir, file)
			syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.add(syntax)
		}
		if len(p.tests) > 0 {
			packages = append(packages, p)
		}
	}
	return packages, nil
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
				return false
			}
			return true
		})
	}
	slices.Sort(p.allocates)
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
