package main

import (
	"cmp"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// file is one Go file that is rewritten.
type file struct {
	set    *token.FileSet
	syntax *ast.File
	source []byte
	// packages are the moves of the imports of the file, by the name that a package has in it.
	packages map[string]imported
	edits    []edit
}

type imported struct {
	move
	// name is what the package is called in the file afterwards.
	name string
}

// renameSource returns the source of a Go file with the new names. The names in taken are those that the package of the
// file declares.
func renameSource(source []byte, taken map[string]bool) ([]byte, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{set: set, syntax: syntax, source: source, packages: map[string]imported{}}
	f.imports(taken)
	if len(f.edits) == 0 {
		return source, nil
	}
	ast.Inspect(syntax, f.visit)
	f.comments()
	return format.Source(f.apply())
}

// imports rewrites the imports.
func (f *file) imports(taken map[string]bool) {
	hidden := f.local()
	// The names and the paths of imports that stay as they are.
	names, kept := map[string]bool{}, map[string]bool{}
	for _, spec := range f.syntax.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		_, now, moved := find(path)
		if !moved {
			kept[path] = true
			now = path
		}
		if spec.Name == nil {
			names[base(now)] = true
		}
	}
	for _, spec := range f.syntax.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		m, now, ok := find(path)
		if !ok {
			continue
		}
		local, name, rewritten := base(path), base(now), strconv.Quote(now)
		switch {
		case spec.Name != nil:
			local, name = spec.Name.Name, spec.Name.Name
			rewritten = name + " " + rewritten
		case local != name && (hidden[name] || taken[name]):
			// The old name serves, unless another package has it now.
			name = local
			if names[name] {
				name += "pkg"
			}
			rewritten = name + " " + rewritten
		case kept[now]:
			rewritten = "" // two packages have become one
		default:
			kept[now] = true
		}
		f.replace(spec, rewritten)
		f.packages[local] = imported{m, name}
	}
}

// local returns the names that the file declares for something else than a package.
func (f *file) local() map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok && ident.Obj != nil && ident.Obj.Kind != ast.Typ {
			names[ident.Name] = true
		}
		return true
	})
	return names
}

// visit rewrites the names of one node.
func (f *file) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.SelectorExpr:
		pkg, ok := f.packageOf(node)
		if !ok {
			return true
		}
		f.replace(node.X, pkg.name)
		if name, ok := pkg.names[node.Sel.Name]; ok {
			f.replace(node.Sel, name)
		}
		return false
	case *ast.CompositeLit:
		f.fields(node, node.Type)
	}
	return true
}

// packageOf returns the move of the package that stands before the dot.
func (f *file) packageOf(selector *ast.SelectorExpr) (imported, bool) {
	ident, ok := selector.X.(*ast.Ident)
	if !ok || ident.Obj != nil {
		return imported{}, false
	}
	pkg, ok := f.packages[ident.Name]
	return pkg, ok
}

// fields rewrites the keys of a literal of a type, and those of literals in it whose type is left out.
func (f *file) fields(literal *ast.CompositeLit, of ast.Expr) {
	switch t := of.(type) {
	case *ast.ArrayType:
		f.elements(literal, t.Elt)
		return
	case *ast.MapType:
		f.elements(literal, t.Value)
		return
	case *ast.IndexExpr:
		of = t.X
	}
	selector, ok := of.(*ast.SelectorExpr)
	if !ok {
		return
	}
	pkg, ok := f.packageOf(selector)
	if !ok {
		return
	}
	if name, ok := pkg.elements[selector.Sel.Name]; ok {
		f.elements(literal, &ast.SelectorExpr{X: selector.X, Sel: ast.NewIdent(name)})
		return
	}
	for _, element := range literal.Elts {
		pair, _ := element.(*ast.KeyValueExpr)
		if pair == nil {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok && pkg.move.fields[selector.Sel.Name][key.Name] != "" {
			f.replace(key, pkg.move.fields[selector.Sel.Name][key.Name])
		}
	}
}

func (f *file) elements(literal *ast.CompositeLit, of ast.Expr) {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		if inner, ok := element.(*ast.CompositeLit); ok && inner.Type == nil {
			f.fields(inner, of)
		}
	}
}

// qualified is a name with its package in a comment.
var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)

func (f *file) comments() {
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			text := qualified.ReplaceAllStringFunc(comment.Text, func(name string) string {
				local, exported, _ := strings.Cut(name, ".")
				pkg, ok := f.packages[local]
				if !ok {
					return name
				}
				return pkg.name + "." + cmp.Or(pkg.names[exported], exported)
			})
			if text != comment.Text {
				f.replace(comment, text)
			}
		}
	}
}

func (f *file) offset(pos token.Pos) int { return f.set.Position(pos).Offset }

func (f *file) replace(node ast.Node, text string) {
	f.edits = append(f.edits, edit{f.offset(node.Pos()), f.offset(node.End()), text})
}

// apply returns the source with all edits.
func (f *file) apply() []byte {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out []byte
	at := 0
	for _, e := range f.edits {
		out = append(out, f.source[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, f.source[at:]...)
}

// declared returns the names that the packages in a folder declare.
func declared(folder string) map[string]bool {
	names := map[string]bool{}
	paths, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, path := range paths {
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			continue // the file has an error of its own
		}
		for name := range syntax.Scope.Objects {
			names[name] = true
		}
	}
	return names
}

// modulePath is the path of a module of this repository in a go.mod file.
var modulePath = regexp.MustCompile(regexp.QuoteMeta(module) + `/[\w/.-]+`)

// renameModules returns a go.mod file with the new paths. It leaves the folders of replace directives alone.
func renameModules(source []byte) []byte {
	return modulePath.ReplaceAllFunc(source, func(path []byte) []byte {
		if _, now, ok := find(string(path)); ok {
			return []byte(now)
		}
		return path
	})
}
