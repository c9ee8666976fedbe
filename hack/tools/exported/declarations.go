package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

// declarations returns the lines of what a package exports.
func declarations(p golist.Package) (string, error) {
	l := &lines{set: token.NewFileSet(), root: strings.TrimSuffix(p.Dir, strings.TrimPrefix(p.ImportPath, module))}
	for _, name := range p.GoFiles {
		l.file(filepath.Join(p.Dir, name))
	}
	if l.err != nil {
		return "", l.err
	}
	slices.Sort(l.all)
	return strings.Join(slices.Compact(l.all), "\n") + "\n", nil
}

type lines struct {
	set *token.FileSet
	// root is the folder of the module at the root.
	root string
	// imports are the paths of what the file imports, by name.
	imports map[string]string
	all     []string
	// err joins those of files that cannot be read, and of nodes that cannot be printed.
	err error
}

func (l *lines) parse(path string) (declarations []ast.Decl, imports []*ast.ImportSpec) {
	file, err := parser.ParseFile(l.set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		l.err = errors.Join(l.err, err)
		return nil, nil
	}
	return file.Decls, file.Imports
}

func (l *lines) file(path string) {
	declarations, imports := l.parse(path)
	l.imports = map[string]string{}
	for _, spec := range imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		l.imports[filepath.Base(imported)] = imported
	}
	for _, declaration := range declarations {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			l.function(d)
		case *ast.GenDecl:
			l.general(d)
		}
	}
}

// internal adds the fields and methods of a type of an internal package, which has a public name. Nothing else shows
// them.
func (l *lines) internal(name string, target *ast.SelectorExpr) {
	path := l.imports[l.text(target.X)]
	if !strings.HasPrefix(path, module) || !slices.Contains(strings.Split(path, "/"), "internal") {
		return
	}
	files, err := filepath.Glob(filepath.Join(l.root, strings.TrimPrefix(path, module), "*.go"))
	l.err = errors.Join(l.err, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		declarations, _ := l.parse(file)
		for _, declaration := range declarations {
			l.declarationOf(declaration, target.Sel.Name, name)
		}
	}
}

// declarationOf adds what a declaration says of a type, under the public name.
func (l *lines) declarationOf(declaration ast.Decl, of, name string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && receiver(d).Name == of {
			receiver(d).Name = name
			l.function(d)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.Name == of {
				l.members(name, spec.Type)
			}
		}
	}
}

func (l *lines) add(parts ...string) {
	l.all = append(l.all, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
}

// text returns a node as it stands in code, on one line.
func (l *lines) text(node any) string {
	var out bytes.Buffer
	l.err = errors.Join(l.err, format.Node(&out, l.set, node))
	return unwrapped.Replace(strings.Join(strings.Fields(out.String()), " "))
}

// unwrapped puts parameters that stand on lines of their own on one line.
var unwrapped = strings.NewReplacer("( ", "(", ", )", ")")

func (l *lines) function(f *ast.FuncDecl) {
	if !f.Name.IsExported() || f.Recv != nil && !receiver(f).IsExported() {
		return
	}
	l.add(l.text(&ast.FuncDecl{Recv: f.Recv, Name: f.Name, Type: f.Type}))
}

// receiver returns the name of the type of a method: the first name in it is that of the type, before its parameters.
func receiver(method *ast.FuncDecl) (name *ast.Ident) {
	ast.Inspect(method.Recv.List[0].Type, func(n ast.Node) bool {
		if found, ok := n.(*ast.Ident); ok && name == nil {
			name = found
		}
		return name == nil
	})
	return name
}

func (l *lines) general(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				l.typeSpec(spec)
			}
		case *ast.ValueSpec:
			l.values(d.Tok, spec)
		}
	}
}

// values adds constants with their values, and variables with their types.
func (l *lines) values(token token.Token, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		parts := []string{token.String(), name.Name}
		if spec.Type != nil {
			parts = append(parts, l.text(spec.Type))
		}
		if token.String() == "const" && i < len(spec.Values) {
			parts = append(parts, "=", l.text(spec.Values[i]))
		}
		l.add(parts...)
	}
}

func (l *lines) typeSpec(spec *ast.TypeSpec) {
	name := spec.Name.Name
	if spec.TypeParams != nil {
		head := l.text(&ast.FuncType{TypeParams: spec.TypeParams, Params: &ast.FieldList{}})
		name += strings.TrimSuffix(strings.TrimPrefix(head, "func"), "()")
	}
	l.members(spec.Name.Name, spec.Type)
	switch t := spec.Type.(type) {
	case *ast.StructType:
		l.add("type", name, "struct")
	case *ast.InterfaceType:
		l.add("type", name, "interface")
	default:
		if !spec.Assign.IsValid() {
			l.add("type", name, l.text(t))
			return
		}
		l.add("type", name, "=", l.text(t))
		if target, ok := t.(*ast.SelectorExpr); ok {
			l.internal(name, target)
		}
	}
}

// members adds the fields of a struct, or the methods of an interface.
func (l *lines) members(name string, of ast.Expr) {
	switch of := of.(type) {
	case *ast.StructType:
		l.fields("type "+name+" struct,", of.Fields)
	case *ast.InterfaceType:
		l.fields("type "+name+" interface,", of.Methods)
	}
}

func (l *lines) fields(head string, fields *ast.FieldList) {
	for _, field := range fields.List {
		tag := ""
		if field.Tag != nil {
			tag = field.Tag.Value
		}
		if len(field.Names) == 0 {
			l.add(head, "embedded", l.text(field.Type), tag)
		}
		for _, name := range field.Names {
			switch function, isMethod := field.Type.(*ast.FuncType); {
			case !name.IsExported():
			case isMethod && strings.Contains(head, " interface,"):
				l.add(head, name.Name+strings.TrimPrefix(l.text(function), "func"))
			default:
				l.add(head, name.Name, l.text(field.Type), tag)
			}
		}
	}
}
