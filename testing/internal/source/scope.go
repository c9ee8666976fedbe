package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Identifiers returns the names that an import of the file must not have: all identifiers of the file that are not
// import names or parts of a selector, and what the other files of its package declare.
func (f *File) Identifiers() []string {
	names := maps.Clone(f.declaredElsewhere())
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			if _, qualifier := n.X.(*ast.Ident); qualifier {
				return false
			}
		case *ast.Ident:
			names[n.Name] = true
		}
		return true
	})
	return slices.Collect(maps.Keys(names))
}

// siblingsOf returns the names that the other files of the package of a file declare outside of functions. Files for
// other platforms count too. A file that cannot be read declares nothing.
func siblingsOf(path, pkg string) map[string]bool {
	names := map[string]bool{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return names
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || entry.Name() == filepath.Base(path) {
			continue
		}
		sibling := filepath.Join(filepath.Dir(path), entry.Name())
		// A file with errors has the declarations before the first of them.
		file, _ := parser.ParseFile(token.NewFileSet(), sibling, nil, parser.SkipObjectResolution)
		if file != nil && file.Name.Name == pkg {
			declare(names, file)
		}
	}
	return names
}

// declare adds the names that a file declares outside of functions.
func declare(names map[string]bool, file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
}
