package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// vocabulary is what a package tells about its nodes.
type vocabulary struct {
	pkg   *doc.Package
	files *token.FileSet
	// sources are the contents of the files, by name.
	sources map[string][]byte
	// nodes are sorted by name.
	nodes []node
}

// node is an exported struct or slice type of one of the groups.
type node struct {
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

// load reads the package in folder.
func load(folder, importPath string) (*vocabulary, error) {
	// The pages should not depend on the machine they are made on.
	target := build.Default
	target.GOOS, target.GOARCH = "linux", "amd64"
	found, err := target.ImportDir(folder, 0)
	if err != nil {
		return nil, fmt.Errorf("could not find the package: %w", err)
	}
	v := &vocabulary{files: token.NewFileSet(), sources: map[string][]byte{}}
	var parsed []*ast.File
	for _, name := range slices.Concat(found.GoFiles, found.TestGoFiles, found.XTestGoFiles) {
		file := filepath.Join(folder, name)
		if v.sources[file], err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("could not read the package: %w", err)
		}
		f, err := parser.ParseFile(v.files, file, v.sources[file], parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("could not read the package: %w", err)
		}
		parsed = append(parsed, f)
	}
	if v.pkg, err = doc.NewFromFiles(v.files, parsed, importPath); err != nil {
		return nil, fmt.Errorf("could not read the doc comments: %w", err)
	}
	for _, t := range v.pkg.Types {
		if n, ok := nodeOf(t); ok {
			v.nodes = append(v.nodes, n)
		}
	}
	return v, nil
}

// nodeOf tells whether t is a node, and which.
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
	if len(v.nodes) == 0 {
		missing = append(missing, "package "+v.pkg.Name+" has no nodes")
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
