package migrate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// facts are what finders look up in the files of a package. Names are those of symbols.
type facts struct {
	info *types.Info
	pkg  *types.Package
	// uses are the places where names of the origin are used, and others those of other packages: "path.Name" or
	// "path.Type.Name".
	uses, others map[string][]token.Pos
	literals     []literal
	calls        []*ast.CallExpr
	returns      []*ast.ReturnStmt
	texts        []*ast.BasicLit
	functions    map[types.Object]*ast.FuncDecl
	symbols      *symbols
}

// literal is a composite literal of a type with a name.
type literal struct {
	at token.Pos
	// of is the symbol of the type, or "path.Name" for a type of another module.
	of     string
	fields map[string]ast.Expr
	named  *types.Named
	inTest bool
}

// finder returns the places in a package where a difference may show.
type finder func(f *facts) []token.Pos

// newFacts collects the facts of files, which are of one package.
func newFacts(files []*source, of *origin) *facts {
	f := &facts{
		info: files[0].info, pkg: files[0].pkg, uses: map[string][]token.Pos{}, others: map[string][]token.Pos{},
		functions: map[types.Object]*ast.FuncDecl{}, symbols: newSymbols(of, files[0].pkg),
	}
	for _, file := range files {
		inTest := strings.HasSuffix(file.path, "_test.go")
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			f.add(node, inTest)
			return true
		})
	}
	return f
}

func (f *facts) add(node ast.Node, inTest bool) {
	switch n := node.(type) {
	case *ast.Ident:
		f.addUse(n)
	case *ast.CompositeLit:
		f.addLiteral(n, inTest)
	case *ast.CallExpr:
		f.calls = append(f.calls, n)
	case *ast.ReturnStmt:
		f.returns = append(f.returns, n)
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			f.texts = append(f.texts, n)
		}
	case *ast.FuncDecl:
		f.functions[f.info.Defs[n.Name]] = n
	}
}

func (f *facts) addUse(ident *ast.Ident) {
	object := f.info.Uses[ident]
	if object == nil || object.Pkg() == nil {
		return
	}
	if name, ok := f.symbols.find(object); ok {
		f.uses[name] = append(f.uses[name], ident.Pos())
		return
	}
	name := object.Name()
	if method, ok := object.(*types.Func); ok && method.Signature().Recv() != nil {
		if named := namedOf(method.Signature().Recv().Type()); named != nil {
			name = named.Obj().Name() + "." + name
		}
	}
	name = object.Pkg().Path() + "." + name
	f.others[name] = append(f.others[name], ident.Pos())
}

func (f *facts) addLiteral(n *ast.CompositeLit, inTest bool) {
	named := namedOf(f.info.TypeOf(n))
	if named == nil || named.Obj().Pkg() == nil {
		return
	}
	name, ok := f.symbols.find(named.Obj())
	if !ok {
		name = named.Obj().Pkg().Path() + "." + named.Obj().Name()
	}
	l := literal{at: n.Pos(), of: name, fields: map[string]ast.Expr{}, named: named, inTest: inTest}
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				l.fields[key.Name] = pair.Value
			}
		}
	}
	f.literals = append(f.literals, l)
}

// namedOf is the named type of t, or of what t points to.
func namedOf(t types.Type) *types.Named {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

func (f *facts) matching(match func(l literal) bool) []token.Pos {
	var found []token.Pos
	for _, l := range f.literals {
		if match(l) {
			found = append(found, l.at)
		}
	}
	return found
}

// anyOf finds what any of the finders finds.
func anyOf(finders ...finder) finder {
	return func(f *facts) []token.Pos {
		var found []token.Pos
		for _, find := range finders {
			found = append(found, find(f)...)
		}
		return found
	}
}

// uses finds uses of names: of types, functions and variables, and fields and methods of types.
func uses(names ...string) finder {
	return func(f *facts) []token.Pos {
		var found []token.Pos
		for _, name := range names {
			found = append(found, f.uses[name]...)
		}
		return found
	}
}

// usesOf finds uses of names of a package of another module.
func usesOf(path string, names ...string) finder {
	return func(f *facts) []token.Pos {
		var found []token.Pos
		for _, name := range names {
			found = append(found, f.others[path+"."+name]...)
		}
		return found
	}
}

// literals finds literals of types.
func literals(names ...string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool { return slices.Contains(names, l.of) })
	}
}

// with finds literals of a type that set all the fields.
func with(name string, fields ...string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool { return l.of == name && l.sets(fields...) == len(fields) })
	}
}

// without finds literals of a type that set none of the fields.
func without(name string, fields ...string) finder {
	return func(f *facts) []token.Pos {
		return f.matching(func(l literal) bool { return l.of == name && l.sets(fields...) == 0 })
	}
}

func (l literal) sets(fields ...string) int {
	n := 0
	for _, field := range fields {
		if l.fields[field] != nil {
			n++
		}
	}
	return n
}

// alike finds literals, two or more in a package, that have the same key. An empty key is none.
func alike(key func(f *facts, l literal) string) finder {
	return func(f *facts) []token.Pos {
		groups := map[string][]token.Pos{}
		for _, l := range f.literals {
			if k := key(f, l); k != "" {
				groups[k] = append(groups[k], l.at)
			}
		}
		var found []token.Pos
		for _, k := range slices.Sorted(maps.Keys(groups)) {
			if len(groups[k]) > 1 {
				found = append(found, groups[k]...)
			}
		}
		return found
	}
}

// typeArgument is a type argument of a literal's type.
func (l literal) typeArgument(i int) string {
	if l.named.TypeArgs().Len() <= i {
		return ""
	}
	return l.named.TypeArgs().At(i).String()
}

// text is the value of an expression that is a constant string.
func (f *facts) text(e ast.Expr) (string, bool) {
	if e == nil {
		return "", false
	}
	value := f.info.Types[e].Value
	if value == nil || value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(value), true
}

// negative reports whether an expression has a constant below zero in it.
func (f *facts) negative(e ast.Expr) bool {
	found := false
	if e == nil {
		return false
	}
	ast.Inspect(e, func(node ast.Node) bool {
		if expression, ok := node.(ast.Expr); ok {
			value := f.info.Types[expression].Value
			found = found || value != nil && value.Kind() == constant.Int && constant.Sign(value) < 0
		}
		return !found
	})
	return found
}

// mentions reports whether a node has one of the places in it.
func mentions(node ast.Node, places []token.Pos) bool {
	return node != nil && slices.ContainsFunc(places, func(at token.Pos) bool {
		return node.Pos() <= at && at < node.End()
	})
}

// body is the function that an expression is: a literal, or a function of the package.
func (f *facts) body(e ast.Expr) ast.Node {
	switch e := e.(type) {
	case *ast.FuncLit:
		return e.Body
	case *ast.Ident:
		if declared := f.functions[f.info.Uses[e]]; declared != nil && declared.Body != nil {
			return declared.Body
		}
	case *ast.SelectorExpr:
		if declared := f.functions[f.info.Uses[e.Sel]]; declared != nil && declared.Body != nil {
			return declared.Body
		}
	}
	return nil
}

// says finds texts with a part in them.
func says(parts ...string) finder {
	return func(f *facts) []token.Pos {
		var found []token.Pos
		for _, literal := range f.texts {
			text, err := strconv.Unquote(literal.Value)
			said := func(part string) bool { return strings.Contains(text, part) }
			if err == nil && slices.ContainsFunc(parts, said) {
				found = append(found, literal.Pos())
			}
		}
		return found
	}
}
