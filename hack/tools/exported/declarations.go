package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

// declarations returns the lines of what a package exports.
func declarations(p golist.Package) (string, error) {
	l := &lines{set: token.NewFileSet()}
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(l.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				l.function(d)
			case *ast.GenDecl:
				l.general(d)
			}
		}
	}
	if l.err != nil {
		return "", l.err
	}
	slices.Sort(l.all)
	return strings.Join(slices.Compact(l.all), "\n") + "\n", nil
}

type lines struct {
	set *token.FileSet
	all []string
	// err is the first of a node that cannot be printed.
	err error
}

func (l *lines) add(parts ...string) {
	l.all = append(l.all, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
}

// text returns a node as it stands in code, on one line.
func (l *lines) text(node any) string {
	var out bytes.Buffer
	if err := format.Node(&out, l.set, node); err != nil && l.err == nil {
		l.err = err
	}
	return unwrapped.Replace(strings.Join(strings.Fields(out.String()), " "))
}

// unwrapped puts parameters that stand on lines of their own on one line.
var unwrapped = strings.NewReplacer("( ", "(", ", )", ")")

func (l *lines) function(f *ast.FuncDecl) {
	if !f.Name.IsExported() {
		return
	}
	if f.Recv != nil && !ast.IsExported(receiver(f.Recv.List[0].Type)) {
		return
	}
	l.add(l.text(&ast.FuncDecl{Recv: f.Recv, Name: f.Name, Type: f.Type}))
}

// receiver returns the name of the type of a receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
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
	switch t := spec.Type.(type) {
	case *ast.StructType:
		l.add("type", name, "struct")
		l.fields("type "+spec.Name.Name+" struct,", t.Fields)
	case *ast.InterfaceType:
		l.add("type", name, "interface")
		l.fields("type "+spec.Name.Name+" interface,", t.Methods)
	default:
		equals := ""
		if spec.Assign.IsValid() {
			equals = "="
		}
		l.add("type", name, equals, l.text(t))
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
