package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// simulation is the end of the path of the package whose functions Run… run a test in virtual time.
const simulation = "/testing/simulation"

// virtualTime is what runs in virtual time in a package. The rules are in the comment of this command.
//
// A function or a variable is known by its object, a method by its name alone.
type virtualTime struct {
	*source
	// spans are the parts of files that are in virtual time, in their order. They do not overlap.
	spans []span
	// virtual are the functions, methods, variables, fields and parameters that are used in virtual time only.
	virtual map[any]bool
	// real are those that are used in real time.
	real map[any]bool
}

// span is a part of a file.
type span struct{ from, to token.Pos }

func spanOf(n ast.Node) span { return span{n.Pos(), n.End()} }

func (s span) contains(pos token.Pos) bool { return s.from <= pos && pos < s.to }

func newVirtualTime(p *testPackage) *virtualTime {
	v := &virtualTime{source: newSource(p)}
	// What is in virtual time makes more of what it uses be in virtual time.
	for known := -1; known < len(v.virtual); {
		known = len(v.virtual)
		v.findSpans()
		v.findVirtual()
	}
	return v
}

func (v *virtualTime) contains(pos token.Pos) bool {
	i, found := slices.BinarySearchFunc(v.spans, pos, func(s span, pos token.Pos) int { return int(s.from - pos) })
	return found || i > 0 && v.spans[i-1].contains(pos)
}

// findSpans finds what is called in virtual time: what calls pass on, and the units that are used so.
func (v *virtualTime) findSpans() {
	var spans []span
	for _, call := range v.calls {
		for i, argument := range call.Args {
			if v.callsVirtually(call, i) {
				for _, f := range v.functionsIn(argument, nil) {
					spans = append(spans, f.span)
				}
			}
		}
	}
	for _, u := range v.units {
		if v.isVirtual(u.holder) {
			spans = append(spans, u.span)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
	v.spans = nil
	for _, s := range spans {
		if last := len(v.spans) - 1; last >= 0 && s.from < v.spans[last].to {
			v.spans[last].to = max(v.spans[last].to, s.to)
			continue
		}
		v.spans = append(v.spans, s)
	}
}

// callsVirtually says whether a call has the functions in an argument called in virtual time only.
func (v *virtualTime) callsVirtually(call *ast.CallExpr, argument int) bool {
	switch path, name := v.qualified(call.Fun); {
	case path == "testing/synctest" && name == "Test":
		return argument > 0
	case strings.HasSuffix(path, simulation) && strings.HasPrefix(name, "Run"):
		return true
	}
	called := v.called(call.Fun)
	if called == nil {
		return false
	}
	if called.Signature().Recv() == nil && strings.HasSuffix("/"+v.folder, simulation) {
		// All Run… call attempt, and so do its own tests.
		if called.Name() == "attempt" || strings.HasPrefix(called.Name(), "Run") {
			return true
		}
	}
	parameters := v.parameters[called]
	// The last parameter may take many arguments.
	last := min(argument, len(parameters)-1)
	return last >= 0 && v.isVirtual(parameters[last])
}

// called returns the function or method of the package that an expression stands for, or nil.
func (v *virtualTime) called(expression ast.Expr) *types.Func {
	switch e := expression.(type) {
	case *ast.ParenExpr:
		return v.called(e.X)
	case *ast.IndexExpr:
		return v.called(e.X)
	case *ast.IndexListExpr:
		return v.called(e.X)
	case *ast.SelectorExpr:
		return v.called(e.Sel)
	case *ast.Ident:
		if function, ok := v.info.Uses[e].(*types.Func); ok {
			return function.Origin()
		}
	}
	return nil
}

// findVirtual looks at each use. That of something by itself does not count.
func (v *virtualTime) findVirtual() {
	v.virtual, v.real = map[any]bool{}, map[any]bool{}
	for _, u := range v.uses {
		switch {
		case v.contains(u.at):
			v.virtual[u.of] = true
		case !v.usesItself(u):
			v.real[u.of] = true
		}
	}
	for of := range v.real {
		delete(v.virtual, of)
	}
}

func (v *virtualTime) usesItself(u use) bool {
	return slices.ContainsFunc(v.bodies[u.of], func(s span) bool { return s.contains(u.at) })
}

// isVirtual says whether all uses are in virtual time. A selector of which nothing but the name is known may be any
// field of the name.
func (v *virtualTime) isVirtual(of any) bool {
	field, ok := of.(*types.Var)
	return v.virtual[of] && !(ok && field.IsField() && v.real[field.Name()])
}
