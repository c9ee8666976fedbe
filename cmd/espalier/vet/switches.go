package vet

import (
	"golang.org/x/tools/go/ssa"
)

// switchesOf are the methods that the package calls on the node that the call returns, by their names. It has all
// calls in which the node, or what such a method returns, gets.
func (p *program) switchesOf(call *ssa.Call) map[string]*ssa.Call {
	found := map[string]*ssa.Call{}
	if call == nil {
		return found
	}
	seen := map[ssa.Value]bool{}
	var follow func(v ssa.Value)
	follow = func(v ssa.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, user := range refersTo(v) {
			switch user := user.(type) {
			case *ssa.Call:
				p.followCall(v, user, found, follow)
			case *ssa.FieldAddr:
				follow(user)
			case *ssa.Phi:
				follow(user)
			case *ssa.Store:
				if user.Val == v {
					p.loads(user.Addr, follow)
				}
			case *ssa.Return:
				for _, caller := range p.calls[user.Parent()] {
					if caller.Value() != nil {
						follow(caller.Value())
					}
				}
			}
		}
	}
	follow(call)
	return found
}

func (p *program) followCall(v ssa.Value, call *ssa.Call, found map[string]*ssa.Call, follow func(v ssa.Value)) {
	f := p.body(call.Call.StaticCallee())
	if f == nil {
		return
	}
	if isOurs(f.Object()) && namedOf(call.Type()) != nil && isOurs(namedOf(call.Type()).Obj()) {
		found[f.Name()] = call
		follow(call)
	}
	for i, argument := range call.Call.Args {
		if argument == v && i < len(f.Params) {
			follow(f.Params[i])
		}
	}
}

// loads calls do with what the package loads from the address of a variable or field.
func (p *program) loads(address ssa.Value, do func(v ssa.Value)) {
	p.each(func(instruction ssa.Instruction) {
		load, ok := instruction.(*ssa.UnOp)
		if !ok {
			return
		}
		if load.X == address {
			do(load)
			return
		}
		to, ok := address.(*ssa.FieldAddr)
		from, same := load.X.(*ssa.FieldAddr)
		if ok && same && fieldOf(to) == fieldOf(from) {
			do(load)
		}
	})
}
