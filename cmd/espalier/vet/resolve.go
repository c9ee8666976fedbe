package vet

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// body is the function with the code of f: the generic function of an instance, the method of a method value. It is f
// itself if the code is in another package.
func (p *program) body(f *ssa.Function) *ssa.Function {
	if f == nil {
		return nil
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	if f.Synthetic != "" && len(f.Blocks) > 0 {
		if method, ok := f.Object().(*types.Func); ok {
			if declared := p.FuncValue(method.Origin()); declared != nil {
				return declared
			}
		}
	}
	if f.Blocks == nil && f.Object() != nil {
		if method, ok := f.Object().(*types.Func); ok {
			if declared := p.FuncValue(method.Origin()); declared != nil {
				return declared
			}
		}
	}
	return f
}

// resolve returns the functions that the value may be, as far as the package shows. A function of another package that
// returns one stands for it, together with the functions that it gets.
func (p *program) resolve(value ssa.Value) []*ssa.Function {
	var found []*ssa.Function
	seen := map[ssa.Value]bool{}
	var visit func(source ssa.Value)
	visit = func(source ssa.Value) {
		if seen[source] {
			return
		}
		seen[source] = true
		switch v := source.(type) {
		case *ssa.Function:
			found = append(found, p.body(v))
		case *ssa.MakeClosure:
			found = append(found, p.body(v.Fn.(*ssa.Function)))
		case *ssa.Call:
			callee := v.Call.StaticCallee()
			if callee == nil {
				return
			}
			found = append(found, p.body(callee))
			for _, argument := range v.Call.Args {
				if _, ok := argument.Type().Underlying().(*types.Signature); ok {
					p.sources(argument, visit)
				}
			}
		}
	}
	p.sources(value, visit)
	return found
}

// sources calls found with what the value may come from: it looks through variables, fields, parameters, conversions,
// and calls of functions of the package.
func (p *program) sources(value ssa.Value, found func(source ssa.Value)) {
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	all := func(values []ssa.Value) {
		for _, v := range values {
			visit(v)
		}
	}
	visit = func(v ssa.Value) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		switch v := v.(type) {
		case *ssa.ChangeType:
			visit(v.X)
		case *ssa.ChangeInterface:
			visit(v.X)
		case *ssa.MakeInterface:
			visit(v.X)
		case *ssa.Phi:
			all(v.Edges)
		case *ssa.UnOp:
			if stored := p.storedAt(v.X); len(stored) > 0 {
				all(stored)
			} else {
				found(v)
			}
		case *ssa.Parameter:
			if given := p.given(v); len(given) > 0 {
				all(given)
			} else {
				found(v)
			}
		case *ssa.FreeVar:
			all(p.bound(v))
		case *ssa.Extract:
			if call, ok := v.Tuple.(*ssa.Call); ok {
				if returned := p.returned(call, v.Index); len(returned) > 0 {
					all(returned)
					return
				}
			}
			found(v)
		case *ssa.Call:
			if returned := p.returned(v, 0); len(returned) > 0 {
				all(returned)
			} else {
				found(v)
			}
		default:
			found(v)
		}
	}
	visit(value)
}

// storedAt are the values that the package stores at the address: in a global variable, in a field of a function or a
// text, whatever the struct, or else by an instruction that has this very address.
func (p *program) storedAt(address ssa.Value) (values []ssa.Value) {
	switch a := address.(type) {
	case *ssa.Global:
		return p.stored[a]
	case *ssa.FieldAddr:
		switch fieldOf(a).Type().Underlying().(type) {
		case *types.Signature, *types.Basic:
			return p.stored[fieldOf(a)]
		}
	case *ssa.FreeVar:
		for _, variable := range p.bound(a) {
			values = append(values, p.storedAt(variable)...)
		}
	}
	for _, user := range refersTo(address) {
		if store, ok := user.(*ssa.Store); ok && store.Addr == address {
			values = append(values, store.Val)
		}
	}
	return values
}

// given are the arguments that calls in the package pass for the parameter.
func (p *program) given(parameter *ssa.Parameter) (values []ssa.Value) {
	for _, call := range p.calls[parameter.Parent()] {
		for i, candidate := range parameter.Parent().Params {
			if candidate == parameter && i < len(call.Common().Args) {
				values = append(values, call.Common().Args[i])
			}
		}
	}
	return values
}

// bound are the values that the free variable of a function literal is bound to.
func (p *program) bound(variable *ssa.FreeVar) (values []ssa.Value) {
	for _, closure := range p.closures[variable.Parent()] {
		for i, candidate := range variable.Parent().FreeVars {
			if candidate == variable {
				values = append(values, closure.Bindings[i])
			}
		}
	}
	return values
}

// returned are the results of that index of a call of a function of the package.
func (p *program) returned(call *ssa.Call, index int) (values []ssa.Value) {
	f := p.body(call.Call.StaticCallee())
	if f == nil {
		return nil
	}
	eachOf(f, func(instruction ssa.Instruction) {
		if end, ok := instruction.(*ssa.Return); ok && index < len(end.Results) {
			values = append(values, end.Results[index])
		}
	})
	return values
}
