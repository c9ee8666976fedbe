// Package literal writes values as the Go expressions that make them, ready to be pasted into a table of test cases.
package literal

import (
	"go/ast"
	"go/format"
	"go/parser"
	"maps"
	"reflect"
	"strings"
)

// width is how long a line may be before a composite is broken into one line per element.
const width = 120

// maxDepth ends values that contain themselves.
const maxDepth = 64

// Of returns v as a Go expression in a package of its own, with the usual import names, see [Writer.Of].
func Of(v any) string { return (&Writer{}).Of(v) }

// Writer writes expressions for one file. The zero Writer writes for a file without imports.
type Writer struct {
	// Package is the import path of the package of the file. Its types are written without a qualifier.
	Package string
	// Names are the import names that the file has, by import path. An empty name is the name of the package. Other
	// packages have their usual import names, such as corev1.
	Names map[string]string
	// Taken are further identifiers that must not become import names.
	Taken []string

	imports  map[string]string
	problems []string
}

// Call is written as a call of a function.
type Call struct {
	// Package is the import path of the package of the function.
	Package string
	// Func is the name of the function.
	Func string
	// Args are the arguments. They are written with their types.
	Args []any
	// Method is called on the result with MethodArgs, unless it is empty.
	Method     string
	MethodArgs []any
}

// Variable is written as the name of a variable of a package.
type Variable struct {
	// Package is the import path of the package, and Name the name in it.
	Package, Name string
}

// Expresser is a value that is written as the result of a call.
type Expresser interface{ Expression() Call }

// Of returns v as a Go expression. Fields with zero values are left out, and maps are sorted by key. Unexported fields,
// functions and channels are left out or nil, since no expression can make them. The same value always gives the same
// text.
func (w *Writer) Of(v any) string { return w.OfValue(reflect.ValueOf(v)) }

// OfValue is Of for a value as reflection has it, which may be the zero Value.
func (w *Writer) OfValue(v reflect.Value) string {
	e := w.expression(v, nil, 0)
	var b strings.Builder
	e.write(&b, 0)
	if formatted, err := format.Source([]byte(b.String())); err == nil {
		return string(formatted)
	}
	return b.String()
}

// OfElement is Of for an element of a list of the type, in which structs are written without their type.
func (w *Writer) OfElement(v any, list reflect.Type) string {
	text := w.Of(v)
	if list.Elem().Kind() == reflect.Struct && reflect.TypeOf(v) == list.Elem() {
		return strings.TrimPrefix(text, w.nameOf(list.Elem()))
	}
	return text
}

// Short returns a value on one line, a constant without its type.
func (w *Writer) Short(v reflect.Value) string {
	var want reflect.Type
	if v.IsValid() {
		want = v.Type()
	}
	return w.expression(v, want, 0).flat()
}

// TypeOf returns the name of a type.
func (w *Writer) TypeOf(t reflect.Type) string { return w.nameOf(t) }

// Imports returns the import paths of the packages that an expression of this Writer names, by import name.
func (w *Writer) Imports(text string) map[string]string {
	used := map[string]string{}
	e, err := parser.ParseExpr(text)
	if err != nil {
		return used
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok && w.imports[pkg.Name] != "" {
				used[pkg.Name] = w.imports[pkg.Name]
			}
		}
		return true
	})
	return used
}

// Missing returns the Imports that are not among the Names. It returns none if the Names are not known.
func (w *Writer) Missing(text string) map[string]string {
	if w.Names == nil {
		return nil
	}
	missing := w.Imports(text)
	maps.DeleteFunc(missing, func(_, importPath string) bool {
		_, has := w.Names[importPath]
		return has
	})
	return missing
}

// Problem says why an expression that was written does not compile, or does not make its value. It is empty if the
// expression does.
func (w *Writer) Problem() string {
	if len(w.problems) == 0 {
		return ""
	}
	return w.problems[0]
}

// node is an expression: a text, or a composite of elements between an opening and a closing text.
type node struct {
	text     string
	open     string
	elements []node
	close    string
	// label stands before the expression: a field name or a map key, with its colon.
	label string
}

func leaf(text string) node { return node{text: text} }

func (n node) isComposite() bool { return n.open != "" }

// flat returns the expression on one line.
func (n node) flat() string {
	if !n.isComposite() {
		return n.label + n.text
	}
	parts := make([]string, len(n.elements))
	for i, element := range n.elements {
		parts[i] = element.flat()
	}
	return n.label + n.open + strings.Join(parts, ", ") + n.close
}

// write writes the expression, over several lines if it is too long for one.
func (n node) write(b *strings.Builder, indent int) {
	line := n.flat()
	if !n.isComposite() || len(n.elements) == 0 || indent*4+len(line) <= width {
		b.WriteString(line)
		return
	}
	b.WriteString(n.label + n.open)
	if n.close == ")" && len(n.elements) == 1 {
		// A call keeps its only argument on its line.
		n.elements[0].write(b, indent)
		b.WriteString(n.close)
		return
	}
	for _, element := range n.elements {
		b.WriteString("\n" + strings.Repeat("\t", indent+1))
		element.write(b, indent+1)
		b.WriteString(",")
	}
	b.WriteString("\n" + strings.Repeat("\t", indent) + n.close)
}
