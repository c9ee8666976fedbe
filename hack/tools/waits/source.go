package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// source is what the files of a package have that [virtualTime] asks for.
type source struct {
	*testPackage
	calls []*ast.CallExpr
	uses  []use
	units []unit
	// bodies are the spans of the units by their holders.
	bodies map[any][]span
	// parameters are those of each function and method, in their order.
	parameters map[types.Object][]types.Object
	// notUsed are identifiers that set a variable or a field, and do not use it.
	notUsed map[*ast.Ident]bool
}

// use is where a function, a method, a variable or a field is used.
type use struct {
	of any
	at token.Pos
}

// unit is the body of a function, or a function in the value of a variable or of a field. It is in virtual time if its
// holder, which is the function, the variable or the field, is used in virtual time only.
type unit struct {
	span
	holder any
}

// held is a function in a value, and the field that holds it, if that is known.
type held struct {
	span
	by types.Object
}

func newSource(p *testPackage) *source {
	s := &source{
		testPackage: p,
		bodies:      map[any][]span{},
		parameters:  map[types.Object][]types.Object{},
		notUsed:     map[*ast.Ident]bool{},
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			s.readUnits(n)
			return true
		})
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			s.readUses(n)
			return true
		})
	}
	return s
}

func (s *source) readUnits(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.parameters[s.info.Defs[n.Name]] = s.parametersOf(n.Type)
		if n.Body != nil {
			s.addUnit(s.info.Defs[n.Name], spanOf(n.Body))
		}
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) {
			for i, value := range n.Values {
				s.addValue(n.Names[i], value)
			}
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == len(n.Rhs) {
			for i, value := range n.Rhs {
				s.addValue(n.Lhs[i], value)
			}
		}
	case *ast.CompositeLit:
		s.functionsIn(n, nil) // Names of fields in it do not use them.
	case *ast.RangeStmt:
		if n.Value != nil {
			s.addValue(n.Value, n.X)
		}
	}
}

// addValue adds the functions in a value that is assigned.
func (s *source) addValue(to, value ast.Expr) {
	variable, field := s.assigned(to)
	for _, f := range s.functionsIn(value, field) {
		s.addUnit(f.by, f.span)
		s.addUnit(variable, f.span)
	}
}

func (s *source) addUnit(holder types.Object, part span) {
	if holder == nil || s.isExported(holder) {
		return
	}
	key := keyOf(holder)
	s.units = append(s.units, unit{part, key})
	s.bodies[key] = append(s.bodies[key], part)
}

// isExported says whether external tests may use what a package declares in its own tests.
func (s *source) isExported(o types.Object) bool {
	return o.Parent() == s.types.Scope() && o.Exported() && !strings.HasSuffix(s.types.Name(), "_test")
}

func (s *source) parametersOf(function *ast.FuncType) (parameters []types.Object) {
	for _, field := range function.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, s.info.Defs[name])
		}
	}
	return parameters
}

// assigned returns the variable and the field that an expression on the left side of an assignment sets, or of which it
// sets a part. They are nil if they are not known: what a parameter points to, others may use.
func (s *source) assigned(to ast.Expr) (variable, field types.Object) {
	switch e := to.(type) {
	case *ast.Ident:
		s.notUsed[e] = true
		object := s.info.ObjectOf(e)
		if v, ok := object.(*types.Var); ok && (v.Kind() == types.LocalVar || v.Kind() == types.PackageVar) {
			return v, nil
		}
	case *ast.SelectorExpr:
		variable, _ = s.assigned(e.X)
		return variable, s.fieldOf(e.Sel)
	case *ast.IndexExpr:
		return s.assigned(e.X)
	case *ast.StarExpr:
		return s.assigned(e.X)
	case *ast.ParenExpr:
		return s.assigned(e.X)
	}
	return nil, nil
}

// fieldOf returns the field that is set by its name, or nil if the type of the struct is not known.
func (s *source) fieldOf(name *ast.Ident) types.Object {
	if v, ok := s.info.Uses[name].(*types.Var); ok && v.IsField() {
		s.notUsed[name] = true
		return v
	}
	return nil
}

// functionsIn returns the function literals and names in a value: alone, in composite literals, and as arguments of a
// call that makes the value. Their holder is the field whose value they are in, if the type of its struct is known.
func (s *source) functionsIn(value ast.Expr, field types.Object) (functions []held) {
	switch e := value.(type) {
	case *ast.FuncLit, *ast.Ident:
		return []held{{spanOf(e), field}}
	case *ast.SelectorExpr:
		return append(s.functionsIn(e.X, field), held{spanOf(e.Sel), field})
	case *ast.ParenExpr:
		return s.functionsIn(e.X, field)
	case *ast.IndexExpr:
		return s.functionsIn(e.X, field)
	case *ast.UnaryExpr:
		return s.functionsIn(e.X, field)
	case *ast.CallExpr:
		for _, argument := range e.Args {
			functions = append(functions, s.functionsIn(argument, field)...)
		}
	case *ast.CompositeLit:
		for i, element := range e.Elts {
			of, value := s.element(e, i, element)
			if of == nil {
				of = field
			}
			functions = append(functions, s.functionsIn(value, of)...)
		}
	}
	return functions
}

// element returns the field that an element of a composite literal sets, or nil, and the value.
func (s *source) element(literal *ast.CompositeLit, i int, element ast.Expr) (field types.Object, value ast.Expr) {
	if pair, ok := element.(*ast.KeyValueExpr); ok {
		if name, ok := pair.Key.(*ast.Ident); ok {
			field = s.fieldOf(name)
		}
		return field, pair.Value
	}
	of := s.info.TypeOf(literal)
	if of == nil {
		return nil, element
	}
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if structure, ok := of.Underlying().(*types.Struct); ok && i < structure.NumFields() {
		return structure.Field(i), element
	}
	return nil, element
}

func (s *source) readUses(n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		s.calls = append(s.calls, n)
	case *ast.SelectorExpr:
		// It may be a method or a field of the package. Names of other packages are not.
		if path, _ := s.qualified(n); path == "" && s.info.Uses[n.Sel] == nil {
			s.uses = append(s.uses, use{n.Sel.Name, n.Sel.Pos()})
		}
	case *ast.Ident:
		if used := s.info.Uses[n]; used != nil && !s.notUsed[n] {
			s.uses = append(s.uses, use{keyOf(used), n.Pos()})
		}
	}
}

// keyOf returns what an object is known by.
func keyOf(object types.Object) any {
	switch o := object.(type) {
	case *types.Func:
		if o.Signature().Recv() != nil {
			return o.Name()
		}
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return object
}
