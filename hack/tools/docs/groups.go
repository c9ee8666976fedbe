package main

import (
	"go/ast"
	"go/doc"
	"slices"
)

// group is one of the four sorts of nodes. Which one a node belongs to follows from its declaration: a root handles
// requests, a strategy manages objects, a combinator has nodes, and a leaf is any other node.
type group int

const (
	roots group = iota
	leaves
	combinators
	strategies
)

// groups are described in the order of the index.
var groups = []struct {
	group           group
	title, a, about string
}{
	{roots, "Roots", "root", "A root is run by a manager. It gets the requests and runs a tree of nodes for each."},
	{leaves, "Leaves", "leaf", "A leaf acts on the cluster, or on a system outside."},
	{combinators, "Combinators", "combinator", "A combinator runs other nodes."},
	{strategies, "Strategies", "strategy",
		"A strategy, or object manager, is how a leaf makes one object agree with the desired one."},
}

// groupOf reports whether t, a type of the given expression, is a node, and returns its group.
func groupOf(t *doc.Type, underlying ast.Expr) (group, bool) {
	for _, method := range t.Methods {
		argument := secondParameter(method.Decl.Type)
		switch {
		case argument == nil:
		case (method.Name == "Reconcile" || method.Name == "Handle") && baseName(argument) == "Request":
			return roots, true
		case method.Name == "Reconcile" && hasNodes(underlying):
			return combinators, true
		case method.Name == "Reconcile":
			return leaves, true
		case method.Name == "Manage":
			return strategies, true
		}
	}
	return 0, false
}

// secondParameter returns the type of what comes after the context, nil if there is nothing.
func secondParameter(f *ast.FuncType) ast.Expr {
	var parameters []ast.Expr
	for _, declared := range f.Params.List {
		parameters = append(parameters, slices.Repeat([]ast.Expr{declared.Type}, max(1, len(declared.Names)))...)
	}
	if len(parameters) < 2 {
		return nil
	}
	return parameters[1]
}

// hasNodes reports whether a type is a node, or has nodes as fields or elements.
func hasNodes(expr ast.Expr) bool {
	switch expr := expr.(type) {
	case *ast.StructType:
		return slices.ContainsFunc(expr.Fields.List, func(f *ast.Field) bool { return hasNodes(f.Type) })
	case *ast.ArrayType:
		return hasNodes(expr.Elt)
	case *ast.MapType:
		return hasNodes(expr.Value)
	default:
		return baseName(expr) == "SubReconciler"
	}
}

// baseName is the name of a type without package, pointer and type arguments, empty for a type without a name.
func baseName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.StarExpr:
		return baseName(expr.X)
	case *ast.IndexExpr:
		return baseName(expr.X)
	case *ast.IndexListExpr:
		return baseName(expr.X)
	default:
		return ""
	}
}
