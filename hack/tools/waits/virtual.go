package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// span is a part of a file.
type span struct{ from, to token.Pos }

func spanOf(n ast.Node) span { return span{n.Pos(), n.End()} }

func (s span) contains(pos token.Pos) bool { return s.from <= pos && pos < s.to }

func contain(spans []span, pos token.Pos) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.contains(pos) })
}

// flow is where the functions of a package come to.
//
// The holder of a function is the function itself, or the variable or the parameter that has it in its value. A method
// is known by its name alone, which is a string, any other holder by its object.
type flow struct {
	*testPackage
	// bodies are the parts of files that run in virtual time if all uses of their holder are in virtual time.
	bodies map[any][]span
	// uses are the places where a holder is used. A selector whose type is not known uses its name.
	uses map[any][]token.Pos
	// set are identifiers that set a variable, and do not use it.
	set map[*ast.Ident]bool
}

// bubble is the holder of what runs in virtual time in any case.
const bubble = "a bubble of testing/synctest"

// virtualTime returns a function that says whether a place of a package is in virtual time. The rules are in the
// comment of this command.
func virtualTime(p *testPackage) func(token.Pos) bool {
	f := &flow{p, map[any][]span{}, map[any][]token.Pos{}, map[*ast.Ident]bool{}}
	for _, read := range []func(ast.Node){f.readBodies, f.readUses} {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool { read(n); return true })
		}
	}
	found, spans := map[any]bool{bubble: true}, f.bodies[bubble]
	isVirtual := func(pos token.Pos) bool { return contain(spans, pos) }
	// What is in virtual time makes more of what it uses be in virtual time.
	for known := 0; known < len(found); {
		known = len(found)
		for holder := range f.bodies {
			if !found[holder] && f.onlyUsed(holder, isVirtual) {
				found[holder] = true
				spans = append(spans, f.bodies[holder]...)
			}
		}
	}
	return isVirtual
}

// onlyUsed reports whether there are uses of a holder, and all are where they may be. Those by itself do not count.
func (f *flow) onlyUsed(holder any, may func(token.Pos) bool) bool {
	used := false
	for _, pos := range f.uses[holder] {
		switch {
		case may(pos):
			used = true
		case !contain(f.bodies[holder], pos):
			return false
		}
	}
	return used
}

func (f *flow) readBodies(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			f.hold(f.info.Defs[n.Name], n.Body)
		}
	case *ast.ValueSpec:
		for i, value := range n.Values {
			if len(n.Names) == len(n.Values) {
				f.assign(n.Names[i], value)
			}
		}
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			if len(n.Lhs) == len(n.Rhs) {
				f.assign(n.Lhs[i], value)
			}
		}
	case *ast.RangeStmt:
		if n.Value != nil {
			f.assign(n.Value, n.X)
		}
	case *ast.CallExpr:
		for i, argument := range n.Args {
			f.give(argument, f.receiver(n, i))
		}
	}
}

// receiver returns the holder of the functions in an argument of a call, or nil if that is not known.
func (f *flow) receiver(call *ast.CallExpr, argument int) any {
	// simulation is the end of the path of the package whose functions Run… run a test in virtual time.
	const simulation = "/testing/simulation"
	path, name := f.qualified(call.Fun)
	called, ok := typeutil.Callee(f.info, call).(*types.Func)
	if ok && called.Signature().Recv() == nil {
		path, name = "/"+f.folder, called.Name()
	}
	switch {
	case path == "testing/synctest" && name == "Test" && argument > 0:
		return bubble
	case strings.HasSuffix(path, simulation) && (strings.HasPrefix(name, "Run") || name == "attempt"):
		return bubble // All Run… call attempt, and so do its own tests.
	case !ok || called.Signature().Params().Len() == 0:
		return nil
	}
	// The last parameter may take many arguments.
	parameters := called.Origin().Signature().Params()
	return parameters.At(min(argument, parameters.Len()-1))
}

// assign gives the functions in a value to the variable that an expression on the left side of an assignment sets, or
// of which it sets a part. What a parameter points to, others may use.
func (f *flow) assign(to, value ast.Expr) {
	switch e := to.(type) {
	case *ast.Ident:
		f.set[e] = true
		v, ok := f.info.ObjectOf(e).(*types.Var)
		if ok && (v.Kind() == types.LocalVar || v.Kind() == types.PackageVar) {
			f.give(value, v)
		}
	case *ast.SelectorExpr:
		f.assign(e.X, value)
	case *ast.IndexExpr:
		f.assign(e.X, value)
	case *ast.StarExpr:
		f.assign(e.X, value)
	case *ast.ParenExpr:
		f.assign(e.X, value)
	}
}

// give makes a holder have the function literals and names in a value: alone, in composite literals, and as arguments
// of a call that makes the value.
func (f *flow) give(value ast.Expr, holder any) {
	ast.Inspect(value, func(n ast.Node) bool {
		var parts []ast.Expr
		switch n := n.(type) {
		case *ast.FuncLit, *ast.Ident:
			f.hold(holder, n)
		case *ast.CallExpr:
			parts = n.Args
		case *ast.CompositeLit:
			parts = n.Elts
		case *ast.IndexExpr:
			parts = []ast.Expr{n.X}
		case *ast.KeyValueExpr:
			parts = []ast.Expr{n.Value}
		default:
			return true
		}
		for _, part := range parts {
			f.give(part, holder)
		}
		return false
	})
}

// hold makes a holder have a body. External tests may use what a package declares in its own tests, and exports.
func (f *flow) hold(holder any, body ast.Node) {
	o, ok := holder.(types.Object)
	if ok && o.Parent() == f.types.Scope() && o.Exported() && !strings.HasSuffix(f.types.Name(), "_test") {
		return
	}
	if holder = keyOf(holder); holder != nil {
		f.bodies[holder] = append(f.bodies[holder], spanOf(body))
	}
}

func (f *flow) readUses(n ast.Node) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		// It may be a method or a field of the package. Names of other packages are not.
		if path, _ := f.qualified(n); path == "" && f.info.Uses[n.Sel] == nil {
			f.uses[n.Sel.Name] = append(f.uses[n.Sel.Name], n.Sel.Pos())
		}
	case *ast.Ident:
		if key := keyOf(f.info.Uses[n]); key != nil && !f.set[n] {
			f.uses[key] = append(f.uses[key], n.Pos())
		}
	}
}

// keyOf returns what a holder is known by.
func keyOf(holder any) any {
	switch o := holder.(type) {
	case *types.Func:
		if o.Signature().Recv() != nil {
			return o.Name()
		}
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return holder
}
