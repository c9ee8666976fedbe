package main

import (
	"cmp"
	"errors"
	"go/ast"
	"go/doc"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// vocabulary is the nodes of some packages.
type vocabulary struct {
	packages []*source
	nodes    []node
}

// node is an exported struct or slice type of one of the groups.
type node struct {
	from      *source
	name, doc string
	group     group
	// declaration is the Go declaration of the type, without the fields.
	declaration string
	fields      []field
	// examples are those with checked output.
	examples []*doc.Example
}

// field is an exported field, or several that are declared together.
type field struct {
	names         []string
	typeExpr, doc string
	embedded      bool
}

// page is the name of the file of the node's page.
func (n node) page() string {
	return strings.ToLower(n.name) + ".md"
}

// loadVocabulary reads the packages in those of the folders that exist. The nodes are sorted by name.
func loadVocabulary(root string, folders []string) (*vocabulary, error) {
	v := &vocabulary{}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		from, err := load(root, folder)
		if err != nil {
			return nil, err
		}
		v.packages = append(v.packages, from)
		for _, t := range from.pkg.Types {
			if n, ok := nodeOf(t); ok {
				n.from = from
				v.nodes = append(v.nodes, n)
			}
		}
	}
	slices.SortFunc(v.nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return v, nil
}

// nodeOf reports whether t is a node, and returns it.
func nodeOf(t *doc.Type) (node, bool) {
	spec, ok := t.Decl.Specs[0].(*ast.TypeSpec)
	if !ok {
		return node{}, false
	}
	n := node{name: t.Name, doc: t.Doc, declaration: "type " + t.Name + parametersOf(spec)}
	switch underlying := spec.Type.(type) {
	case *ast.StructType:
		n.declaration += " struct"
		n.fields = fieldsOf(underlying)
	case *ast.ArrayType:
		if underlying.Len != nil {
			return node{}, false
		}
		n.declaration += " " + types.ExprString(underlying)
	default:
		return node{}, false
	}
	n.group, ok = groupOf(t, spec.Type)
	for _, example := range t.Examples {
		if example.Output != "" || example.EmptyOutput {
			n.examples = append(n.examples, example)
		}
	}
	return n, ok
}

func parametersOf(spec *ast.TypeSpec) string {
	if spec.TypeParams == nil {
		return ""
	}
	var groups []string
	for _, parameter := range spec.TypeParams.List {
		groups = append(groups, strings.Join(namesOf(parameter), ", ")+" "+types.ExprString(parameter.Type))
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

// fieldsOf returns the exported fields. The unexported ones are not in the declarations of go/doc.
func fieldsOf(s *ast.StructType) []field {
	var fields []field
	for _, f := range s.Fields.List {
		fields = append(fields, field{
			names:    namesOf(f),
			typeExpr: types.ExprString(f.Type),
			embedded: len(f.Names) == 0,
			doc:      cmp.Or(f.Doc.Text(), f.Comment.Text()),
		})
	}
	return fields
}

// namesOf returns the names that are declared together. An embedded field has the name of its type.
func namesOf(f *ast.Field) []string {
	if len(f.Names) == 0 {
		return []string{baseName(f.Type)}
	}
	var names []string
	for _, name := range f.Names {
		names = append(names, name.Name)
	}
	return names
}

// missing returns what the doc comments and examples leave out, a sentence each.
func (v *vocabulary) missing() []string {
	var missing []string
	if len(v.packages) == 0 {
		missing = append(missing, "a package with nodes: "+strings.Join(nodeFolders, ", "))
	}
	for _, from := range v.packages {
		if !slices.ContainsFunc(v.nodes, func(n node) bool { return n.from == from }) {
			missing = append(missing, "package "+from.pkg.Name+" has no nodes")
		}
	}
	for _, n := range v.nodes {
		if n.doc == "" {
			missing = append(missing, n.name+" has no doc comment")
		}
		for _, f := range n.fields {
			if f.doc == "" {
				missing = append(missing, n.name+"."+strings.Join(f.names, ", ")+" has no doc comment")
			}
		}
		if len(n.examples) == 0 {
			missing = append(missing, n.name+" has no example with checked output: func Example"+n.name)
		}
	}
	return missing
}
