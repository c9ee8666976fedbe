package main

import (
	"cmp"
	"go/doc"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// nodeFolders are the packages of nodes. The first has functions that return nodes, the others have types.
var nodeFolders = []string{".", "reconcilers", "component", "feature"}

// nodes are those of a package.
type nodes struct {
	*source
	types []*doc.Type
	// list has the first sentence of each, with a link to its file.
	list string
}

func loadNodes(root string) (packages []nodes, err error) {
	for _, folder := range nodeFolders {
		from, err := load(root, folder)
		if err != nil {
			return nil, err
		}
		p := nodes{source: from}
		functions := from.pkg.Funcs
		for _, t := range from.pkg.Types {
			functions = append(functions, t.Funcs...)
			if folder != "." && slices.ContainsFunc(t.Methods, runs) {
				p.types = append(p.types, t)
				p.add(t.Name, t.Doc, t.Decl.Pos())
			}
		}
		slices.SortFunc(functions, func(a, b *doc.Func) int { return cmp.Compare(a.Name, b.Name) })
		for _, f := range functions {
			// One that returns a node is generic, and returns a pointer alone.
			generic, signature := f.Decl.Type.TypeParams != nil, types.ExprString(f.Decl.Type)
			if folder == "." && generic && strings.Contains(signature, ") *") {
				p.add(f.Name, f.Doc, f.Decl.Pos())
			}
		}
		packages = append(packages, p)
	}
	return packages, nil
}

func (n *nodes) add(name, comment string, at token.Pos) {
	file := path.Join("..", n.folder, filepath.Base(n.files.File(at).Name()))
	n.list += "  - [`" + name + "`](" + file + ") " + strings.TrimPrefix(n.pkg.Synopsis(comment), name+" ") + "\n"
}

// runs reports whether a method runs a node or the root of a tree, or has a node write an object.
func runs(method *doc.Func) bool {
	handles := method.Name == "Handle" && strings.Contains(types.ExprString(method.Decl.Type), ".Request)")
	return method.Name == "Reconcile" || method.Name == "Manage" || handles
}
