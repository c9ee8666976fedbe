package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Fixtures finds rows of tables that change what other rows use.
var Fixtures = &analysis.Analyzer{
	Name: "fixtures",
	Doc: "report a row of a test that changes an object which other rows use\n\n" +
		"The rows of a table run in any order, and one alone with -run. A row that changes a shared object\n" +
		"gives the others another one, or itself when it runs again. Use a Fixture of package testing, or a\n" +
		"copy.",
	Run: runFixtures,
}

// tables are the rows of a package, and the code that they refer to.
type tables struct {
	*analysis.Pass
	// code has the functions of the package: those that are declared, and literals by their variables.
	code map[types.Object]ast.Node
	// users are the rows that use an object, by its variable.
	users map[*types.Var][]*ast.CompositeLit
	// values are what variables are declared with.
	values map[types.Object]ast.Expr
}

func runFixtures(pass *analysis.Pass) (any, error) {
	if !usesEspalier(pass.Pkg) {
		return nil, nil
	}
	t := &tables{
		Pass: pass, code: map[types.Object]ast.Node{}, users: map[*types.Var][]*ast.CompositeLit{},
		values: map[types.Object]ast.Expr{},
	}
	var rows []*ast.CompositeLit
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			t.noteFunction(n)
			if literal, ok := n.(*ast.CompositeLit); ok && t.isRow(literal) {
				rows = append(rows, literal)
				t.noteUses(literal)
			}
			return true
		})
	}
	r := newReporter(pass)
	r.tests = true
	for _, row := range rows {
		t.checkRow(r, row)
	}
	r.report()
	return nil, nil
}

func (t *tables) noteFunction(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			t.code[t.TypesInfo.Defs[n.Name]] = n
		}
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			if name, ok := n.Lhs[i].(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
				t.noteValue(name, value)
			}
		}
	case *ast.ValueSpec:
		for i, value := range n.Values {
			if len(n.Names) == len(n.Values) {
				t.noteValue(n.Names[i], value)
			}
		}
	}
}

func (t *tables) noteValue(name *ast.Ident, value ast.Expr) {
	if declared := t.TypesInfo.Defs[name]; declared != nil {
		t.values[declared] = value
	}
	if literal, ok := value.(*ast.FuncLit); ok {
		t.code[t.TypesInfo.ObjectOf(name)] = literal
	}
}

// isRow reports whether the literal is a case of a table.
func (t *tables) isRow(literal *ast.CompositeLit) bool {
	named := namedOf(t.TypesInfo.TypeOf(literal))
	return named != nil && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == module+"/testing" &&
		strings.HasSuffix(named.Obj().Name(), "TestCase")
}

func (t *tables) noteUses(row *ast.CompositeLit) {
	eachNode(row, func(name *ast.Ident) {
		variable, ok := t.TypesInfo.Uses[name].(*types.Var)
		if ok && t.isShared(variable, row) && !slices.Contains(t.users[variable], row) {
			t.users[variable] = append(t.users[variable], row)
		}
	})
}

// isShared reports whether the variable is a pointer to an object, from outside the row.
func (t *tables) isShared(variable *types.Var, row *ast.CompositeLit) bool {
	_, pointer := types.Unalias(variable.Type()).(*types.Pointer)
	return pointer && !variable.IsField() && isObject(variable.Type()) &&
		(variable.Pos() < row.Pos() || variable.Pos() > row.End())
}

// checkRow reports where the row, or a function of the package that it refers to, changes what other rows use.
func (t *tables) checkRow(r *reporter, row *ast.CompositeLit) {
	for _, code := range t.reached(row) {
		ast.Inspect(code, func(n ast.Node) bool {
			for _, changed := range t.changedBy(n, map[*types.Func]bool{}) {
				variable, ok := t.origin(changed).(*types.Var)
				if !ok || !t.isShared(variable, row) || t.isSet(changed, t.reached(row)...) {
					continue
				}
				if others := slices.DeleteFunc(slices.Clone(t.users[variable]), isSame(row)); len(others) > 0 {
					r.add(n.Pos(), "this row changes %s, which other rows use: change a copy", variable.Name())
				}
			}
			return true
		})
	}
}

// origin is the variable whose object the given one is declared with, also by a function of the package that returns
// it, or the given one.
func (t *tables) origin(variable types.Object) types.Object {
	value := t.values[variable]
	if call, ok := value.(*ast.CallExpr); ok {
		if f := calledFunction(t.Pass, call); f != nil && t.code[f.Origin()] != nil {
			eachNode(t.code[f.Origin()], func(end *ast.ReturnStmt) {
				if len(end.Results) == 1 {
					value = end.Results[0]
				}
			})
		}
	}
	if name, ok := value.(*ast.Ident); ok && t.TypesInfo.Uses[name] != nil {
		return t.TypesInfo.Uses[name]
	}
	return variable
}

func isSame(row *ast.CompositeLit) func(other *ast.CompositeLit) bool {
	return func(other *ast.CompositeLit) bool {
		return other == row || other.Pos() >= row.Pos() && other.End() <= row.End() ||
			row.Pos() >= other.Pos() && row.End() <= other.End()
	}
}

// reached are the row, and the functions of the package that it refers to.
func (t *tables) reached(row ast.Node) []ast.Node {
	found := []ast.Node{row}
	for i := 0; i < len(found); i++ {
		eachNode(found[i], func(name *ast.Ident) {
			object := t.TypesInfo.Uses[name]
			if f, ok := object.(*types.Func); ok {
				object = f.Origin()
			}
			if code := t.code[object]; code != nil && !slices.Contains(found, code) {
				found = append(found, code)
			}
		})
	}
	return found
}

// isSet reports whether the code sets the variable to another object.
func (t *tables) isSet(variable types.Object, code ...ast.Node) (found bool) {
	for _, code := range code {
		eachNode(code, func(assign *ast.AssignStmt) {
			for _, left := range assign.Lhs {
				name, ok := left.(*ast.Ident)
				found = found || ok && t.TypesInfo.Uses[name] == variable
			}
		})
	}
	return found
}

// changedBy are the objects whose content the node changes: a statement, or a call. Seen are the functions around it.
func (t *tables) changedBy(n ast.Node, seen map[*types.Func]bool) (changed []types.Object) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if _, whole := ast.Unparen(left).(*ast.Ident); !whole {
				changed = append(changed, rootObject(t.Pass, left))
			}
		}
	case *ast.IncDecStmt:
		if _, whole := ast.Unparen(n.X).(*ast.Ident); !whole {
			changed = append(changed, rootObject(t.Pass, n.X))
		}
	case *ast.CallExpr:
		if selector, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "Set") {
			changed = append(changed, rootObject(t.Pass, selector.X))
		}
		if name := calledName(t.Pass, n); (name == "delete" || name == "clear") && len(n.Args) > 0 {
			changed = append(changed, rootObject(t.Pass, n.Args[0]))
		}
		changed = append(changed, t.changedByHelper(n, seen)...)
	}
	return changed
}

// changedByHelper are the arguments that a function of the package changes.
func (t *tables) changedByHelper(call *ast.CallExpr, seen map[*types.Func]bool) (changed []types.Object) {
	f := calledFunction(t.Pass, call)
	if f == nil || seen[f.Origin()] || t.code[f.Origin()] == nil {
		return nil
	}
	seen[f.Origin()] = true
	parameters := f.Origin().Signature().Params()
	ast.Inspect(t.code[f.Origin()], func(n ast.Node) bool {
		for _, object := range t.changedBy(n, seen) {
			for i, argument := range call.Args {
				if i < parameters.Len() && object == types.Object(parameters.At(i)) &&
					!t.isSet(object, t.code[f.Origin()]) {
					changed = append(changed, rootObject(t.Pass, argument))
				}
			}
		}
		return true
	})
	return changed
}
