package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"
)

const mapOrder = "what is desired must be the same each time, and here has the order of a map: sort it"

// reportMapOrder reports the loops of f over a map that put something in its order, which no function of reached sorts.
func reportMapOrder(r *reporter, pass *analysis.Pass, f *ssa.Function, reached []*ssa.Function) {
	if f.Syntax() == nil {
		return
	}
	ast.Inspect(f.Syntax(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if !isUnordered(pass, n.X) {
				return true
			}
			for _, made := range ordered(pass, n) {
				if !isSorted(pass, made, reached) {
					r.add(made.at, mapOrder)
				}
			}
		case *ast.CallExpr:
			if name := calledName(pass, n); name == "slices.Collect" && isUnordered(pass, n.Args[0]) {
				made := putInOrder{at: n.Pos(), variable: assignedTo(pass, f.Syntax(), n)}
				if !isArgumentOfSort(pass, f.Syntax(), n) && !isSorted(pass, made, reached) {
					r.add(n.Pos(), mapOrder)
				}
			}
		}
		return true
	})
}

// putInOrder is a place that puts elements behind each other. Variable is what has them.
type putInOrder struct {
	at       token.Pos
	variable types.Object
}

// isUnordered reports whether the expression is a map, or a sequence of what a map has.
func isUnordered(pass *analysis.Pass, e ast.Expr) bool {
	if t := pass.TypesInfo.TypeOf(e); t != nil {
		if _, ok := t.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, calledName(pass, call))
}

// ordered returns the places in the loop that append to what was there before the loop, count its elements, or keep the
// last one.
func ordered(pass *analysis.Pass, loop *ast.RangeStmt) (found []putInOrder) {
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			variable := rootObject(pass, n.Lhs[0])
			appended := appends(pass, n) && declaredBefore(variable, loop) && !perKey(pass, n.Lhs[0], loop)
			if len(n.Lhs) == 1 && (appended || counts(pass, n, loop) || keepsLast(pass, n, loop)) {
				found = append(found, putInOrder{n.Pos(), variable})
			}
		case *ast.CallExpr:
			if written := writtenTo(pass, n); declaredBefore(written, loop) {
				found = append(found, putInOrder{n.Pos(), written})
			}
		}
		return true
	})
	return found
}

func declaredBefore(variable types.Object, loop *ast.RangeStmt) bool {
	return variable != nil && (variable.Pos() < loop.Pos() || variable.Pos() > loop.End())
}

// perKey reports whether the expression is an element of a map or slice, whose place does not depend on the order.
func perKey(pass *analysis.Pass, e ast.Expr, loop *ast.RangeStmt) (found bool) {
	eachNode(e, func(index *ast.IndexExpr) {
		found = found || mentions(pass, index.Index, func(o types.Object) bool { return !declaredBefore(o, loop) })
	})
	return found
}

// counts reports whether the statement uses a variable that the loop counts, as an index or as a value.
func counts(pass *analysis.Pass, assign *ast.AssignStmt, loop *ast.RangeStmt) (found bool) {
	eachNode(loop.Body, func(count *ast.IncDecStmt) {
		name, ok := count.X.(*ast.Ident)
		found = found || ok && mentions(pass, assign, func(object types.Object) bool {
			return object == pass.TypesInfo.ObjectOf(name) && declaredBefore(object, loop)
		})
	})
	return found
}

// keepsLast reports whether each iteration sets a variable from before the loop to something of its element, which the
// loop does not use: the element that comes last is kept, or the first one if the loop then ends.
func keepsLast(pass *analysis.Pass, assign *ast.AssignStmt, loop *ast.RangeStmt) bool {
	name, ok := assign.Lhs[0].(*ast.Ident)
	if !ok || assign.Tok != token.ASSIGN || !slices.Contains(loop.Body.List, ast.Stmt(assign)) {
		return false
	}
	variable, uses := pass.TypesInfo.ObjectOf(name), 0
	mentions(pass, loop.Body, func(object types.Object) bool {
		if object == variable {
			uses++
		}
		return false
	})
	return uses == 1 && declaredBefore(variable, loop) && mentions(pass, assign.Rhs[0], func(o types.Object) bool {
		return o.Pos() >= loop.Pos() && o.Pos() < loop.End()
	})
}

// mentions reports whether the code has a name of an object that is meant.
func mentions(pass *analysis.Pass, code ast.Node, meant func(object types.Object) bool) (found bool) {
	eachNode(code, func(name *ast.Ident) {
		object := pass.TypesInfo.ObjectOf(name)
		found = object != nil && meant(object) || found
	})
	return found
}

// eachNode calls do with each node of the type in the code.
func eachNode[Node ast.Node](code ast.Node, do func(n Node)) {
	ast.Inspect(code, func(n ast.Node) bool {
		if node, ok := n.(Node); ok {
			do(node)
		}
		return true
	})
}

// appends reports whether the statement appends to a slice, but for one of API objects, whose order does not count, or
// to a string.
func appends(pass *analysis.Pass, assign *ast.AssignStmt) bool {
	t := pass.TypesInfo.TypeOf(assign.Lhs[0])
	if t == nil {
		return false
	}
	if basic, ok := t.Underlying().(*types.Basic); ok && basic.Info()&types.IsString != 0 {
		return assign.Tok == token.ADD_ASSIGN || joins(pass, assign)
	}
	slice, ok := t.Underlying().(*types.Slice)
	if !ok || isObject(slice.Elem()) {
		return false
	}
	call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
	return ok && calledName(pass, call) == "append"
}

// joins reports whether the statement sets a text to itself and more.
func joins(pass *analysis.Pass, assign *ast.AssignStmt) (found bool) {
	sum, ok := assign.Rhs[0].(*ast.BinaryExpr)
	if !ok {
		return false
	}
	eachNode(sum, func(part ast.Expr) {
		found = found || types.ExprString(part) == types.ExprString(assign.Lhs[0])
	})
	return found
}

// writtenTo is the buffer or digest that the call writes to, or nil.
func writtenTo(pass *analysis.Pass, call *ast.CallExpr) types.Object {
	if strings.HasPrefix(calledName(pass, call), "fmt.Fprint") {
		return rootObject(pass, call.Args[0])
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Write", "WriteString", "WriteByte", "WriteRune"}, selector.Sel.Name) {
		return nil
	}
	return rootObject(pass, selector.X)
}

// isSorted reports whether one of the functions sorts the variable, or what it gets of a function that returns it.
func isSorted(pass *analysis.Pass, made putInOrder, functions []*ssa.Function) bool {
	variables := []types.Object{made.variable}
	functions = slices.DeleteFunc(slices.Clone(functions), func(f *ssa.Function) bool { return f.Syntax() == nil })
	for _, f := range functions {
		if !returns(pass, f, made.variable) {
			continue
		}
		for _, caller := range functions {
			for _, call := range callsOf(pass, caller.Syntax(), f.Object()) {
				if isArgumentOfSort(pass, caller.Syntax(), call) {
					return true
				}
				variables = append(variables, assignedTo(pass, caller.Syntax(), call))
			}
		}
	}
	return slices.ContainsFunc(functions, func(f *ssa.Function) bool {
		return sortsOneOf(pass, f.Syntax(), variables)
	})
}

// sortsOneOf reports whether a call that sorts has one of the variables as an argument, or as its receiver.
func sortsOneOf(pass *analysis.Pass, code ast.Node, variables []types.Object) (found bool) {
	eachNode(code, func(call *ast.CallExpr) {
		found = found || sorts(pass, call) &&
			mentions(pass, call, func(o types.Object) bool { return slices.Contains(variables, o) })
	})
	return found
}

// sorts reports whether the function that is called sorts, or has no order.
func sorts(pass *analysis.Pass, call *ast.CallExpr) bool {
	name := strings.ToLower(calledName(pass, call))
	return strings.Contains(name, "sort") || strings.HasPrefix(name, "sets.") || name == "slices.contains" ||
		name == "slices.max" || name == "slices.min"
}

func isArgumentOfSort(pass *analysis.Pass, code ast.Node, argument ast.Expr) (found bool) {
	eachNode(code, func(call *ast.CallExpr) {
		found = found || sorts(pass, call) && call.Pos() <= argument.Pos() && argument.End() <= call.End() &&
			ast.Expr(call) != argument
	})
	return found
}

// returns reports whether a statement of the function returns the variable, or the variable is a named result.
func returns(pass *analysis.Pass, f *ssa.Function, variable types.Object) (found bool) {
	for result := range f.Signature.Results().Variables() {
		found = found || variable != nil && types.Object(result) == variable
	}
	eachNode(f.Syntax(), func(end *ast.ReturnStmt) {
		for _, result := range end.Results {
			name, ok := ast.Unparen(result).(*ast.Ident)
			found = found || ok && variable != nil && pass.TypesInfo.ObjectOf(name) == variable
		}
	})
	return found
}

func callsOf(pass *analysis.Pass, code ast.Node, f types.Object) (calls []*ast.CallExpr) {
	eachNode(code, func(call *ast.CallExpr) {
		if called := calledFunction(pass, call); called != nil && types.Object(called.Origin()) == f {
			calls = append(calls, call)
		}
	})
	return calls
}

// assignedTo is the variable that gets the first result of the call, or nil.
func assignedTo(pass *analysis.Pass, code ast.Node, call *ast.CallExpr) (variable types.Object) {
	eachNode(code, func(assign *ast.AssignStmt) {
		if ast.Unparen(assign.Rhs[0]) == ast.Expr(call) {
			variable = rootObject(pass, assign.Lhs[0])
		}
	})
	return variable
}

// rootObject is the variable or field that the expression is about: x of x, *x, &x and x[i], and f of x.f.
func rootObject(pass *analysis.Pass, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return pass.TypesInfo.ObjectOf(e)
	case *ast.SelectorExpr:
		if root := rootObject(pass, e.X); root != nil {
			if _, ok := root.(*types.PkgName); !ok {
				return root
			}
		}
		return pass.TypesInfo.ObjectOf(e.Sel)
	case *ast.StarExpr:
		return rootObject(pass, e.X)
	case *ast.UnaryExpr:
		return rootObject(pass, e.X)
	case *ast.IndexExpr:
		return rootObject(pass, e.X)
	}
	return nil
}

// calledFunction is the function or method that the call calls, or nil.
func calledFunction(pass *analysis.Pass, call *ast.CallExpr) *types.Func {
	f, _ := typeutil.Callee(pass.TypesInfo, call).(*types.Func)
	return f
}

// calledName is the name of what is called, with that of its package if it is of another one.
func calledName(pass *analysis.Pass, call *ast.CallExpr) string {
	called := typeutil.Callee(pass.TypesInfo, call)
	switch {
	case called == nil:
		return ""
	case called.Pkg() == nil || called.Pkg() == pass.Pkg:
		return called.Name()
	}
	return called.Pkg().Name() + "." + called.Name()
}
