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
	if f.Synthetic != "" || f.Blocks == nil {
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
	p.walk(value, func(source ssa.Value) (more []ssa.Value) {
		switch v := source.(type) {
		case *ssa.Function:
			found = append(found, p.body(v))
		case *ssa.MakeClosure:
			found = append(found, p.body(v.Fn.(*ssa.Function)))
		case *ssa.Call:
			callee := v.Call.StaticCallee()
			if callee == nil {
				return nil
			}
			found = append(found, p.body(callee))
			for _, argument := range v.Call.Args {
				if _, ok := argument.Type().Underlying().(*types.Signature); ok {
					more = append(more, argument)
				}
			}
		}
		return more
	})
	return found
}

// sources calls found with what the value may come from.
func (p *program) sources(value ssa.Value, found func(source ssa.Value)) {
	p.walk(value, func(source ssa.Value) []ssa.Value {
		found(source)
		return nil
	})
}

// walk calls found with what the value may come from: it looks through variables, fields, parameters, conversions, and
// calls of functions of the package. Then it goes on to the values that found returns. It comes to each value once.
func (p *program) walk(value ssa.Value, found func(source ssa.Value) (more []ssa.Value)) {
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		from := p.origins(v)
		if _, bound := v.(*ssa.FreeVar); len(from) == 0 && !bound {
			from = found(v)
		}
		for _, next := range from {
			visit(next)
		}
	}
	visit(value)
}

// origins are the values of the package that the value is one of, or none if it comes from elsewhere.
func (p *program) origins(v ssa.Value) []ssa.Value {
	switch v := v.(type) {
	case *ssa.ChangeType:
		return []ssa.Value{v.X}
	case *ssa.ChangeInterface:
		return []ssa.Value{v.X}
	case *ssa.MakeInterface:
		return []ssa.Value{v.X}
	case *ssa.Phi:
		return v.Edges
	case *ssa.UnOp:
		return p.storedAt(v.X)
	case *ssa.Parameter:
		return p.given(v, nil)
	case *ssa.FreeVar:
		return p.bound(v)
	case *ssa.Extract:
		if call, ok := v.Tuple.(*ssa.Call); ok {
			return p.returned(call, v.Index)
		}
	case *ssa.Call:
		return p.returned(v, 0)
	}
	return nil
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

// madeAt is what the function makes that has the address: a variable, a struct, or an array. It is nil for others.
func madeAt(address ssa.Value) *ssa.Alloc {
	switch a := address.(type) {
	case *ssa.IndexAddr:
		address = a.X
	case *ssa.FieldAddr:
		address = a.X
	}
	made, _ := address.(*ssa.Alloc)
	return made
}

// given are the arguments that calls pass for the parameter: those in the callers, or in the package if they are nil.
func (p *program) given(parameter *ssa.Parameter, callers map[*ssa.Function]bool) (values []ssa.Value) {
	for _, call := range p.calls[parameter.Parent()] {
		if callers != nil && !callers[call.Parent()] {
			continue
		}
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

// flow calls used with each instruction that uses the value: also where it is by then in a variable, a field, another
// type, a function literal, a parameter or a result. It goes on to the values that used returns. It comes to each value
// once.
func (p *program) flow(value ssa.Value, used func(v ssa.Value, by ssa.Instruction) (more []ssa.Value)) {
	seen := map[ssa.Value]bool{nil: true}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, user := range refersTo(v) {
			for _, next := range append(used(v, user), p.next(v, user)...) {
				visit(next)
			}
		}
	}
	visit(value)
}

// next are the values that are v, or have it, because of the instruction.
func (p *program) next(v ssa.Value, user ssa.Instruction) (values []ssa.Value) {
	switch user := user.(type) {
	case *ssa.Phi, *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.TypeAssert, *ssa.Slice, *ssa.UnOp,
		*ssa.FieldAddr:
		return []ssa.Value{user.(ssa.Value)}
	case *ssa.Store:
		if user.Val == v {
			return p.loads(user.Addr)
		}
	case *ssa.MakeClosure:
		for i, binding := range user.Bindings {
			if binding == v {
				values = append(values, user.Fn.(*ssa.Function).FreeVars[i])
			}
		}
	case *ssa.Return:
		for _, call := range p.calls[user.Parent()] {
			if call.Value() != nil {
				values = append(values, call.Value())
			}
		}
	case ssa.CallInstruction:
		f := p.body(user.Common().StaticCallee())
		for i, argument := range user.Common().Args {
			if argument == v && f != nil && i < len(f.Params) {
				values = append(values, f.Params[i])
			}
		}
	}
	return values
}

// loads are the values that the package loads from the address of a variable or field, or the variable or array itself.
func (p *program) loads(address ssa.Value) (values []ssa.Value) {
	switch a := address.(type) {
	case *ssa.Alloc:
		return []ssa.Value{a}
	case *ssa.IndexAddr:
		return []ssa.Value{a.X}
	}
	p.each(func(instruction ssa.Instruction) {
		load, ok := instruction.(*ssa.UnOp)
		if !ok {
			return
		}
		to, ok := address.(*ssa.FieldAddr)
		from, same := load.X.(*ssa.FieldAddr)
		if load.X == address || ok && same && fieldOf(to) == fieldOf(from) {
			values = append(values, load)
		}
	})
	return values
}
