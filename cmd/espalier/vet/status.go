package vet

import (
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Status finds nodes that replace the status of their resource.
var Status = &analysis.Analyzer{
	Name: "status",
	Doc: "report a node that replaces the status of its resource as a whole\n\n" +
		"The nodes of a tree share the status: each sets its own fields and conditions. A node that assigns a\n" +
		"new status loses what the nodes before it have set, and what earlier requests have left there.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runStatus,
}

func runStatus(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	for _, handed := range p.handed {
		resource := resourceOf(handed.function)
		if resource == nil || handed.role == "DesiredResource" {
			continue
		}
		for alias := range p.aliases(resource) {
			for _, user := range refersTo(alias) {
				address, ok := user.(*ssa.FieldAddr)
				if !ok || fieldOf(address).Name() != "Status" {
					continue
				}
				if _, ok := fieldOf(address).Type().Underlying().(*types.Struct); !ok {
					continue
				}
				for _, store := range p.storesAt(address) {
					if p.isFresh(store.Val) && p.hasFreshFields(store.Addr) {
						r.add(positionOf(store), "the function given to %s replaces the status as a whole: "+
							"set the fields of this node", handed.role)
					}
				}
			}
		}
	}
	r.report()
	return nil, nil
}

// storesAt are the stores to the address, also by functions that get it.
func (p *program) storesAt(address ssa.Value) (found []*ssa.Store) {
	for alias := range p.aliases(address) {
		for _, user := range refersTo(alias) {
			if store, ok := user.(*ssa.Store); ok && store.Addr == alias {
				found = append(found, store)
			}
		}
	}
	return found
}

// isFresh reports whether the struct is a new one, and takes nothing from a status.
func (p *program) isFresh(value ssa.Value) bool {
	fresh := true
	p.sources(value, func(source ssa.Value) {
		switch v := source.(type) {
		case *ssa.Const:
		case *ssa.UnOp:
			p.sources(v.X, func(pointer ssa.Value) {
				literal, ok := pointer.(*ssa.Alloc)
				fresh = fresh && ok && p.hasFreshFields(literal)
			})
		default:
			fresh = false
		}
	})
	return fresh
}

// hasFreshFields reports whether no field of the struct at the address is set to a part of a status.
func (p *program) hasFreshFields(address ssa.Value) bool {
	for _, user := range refersTo(address) {
		if field, ok := user.(*ssa.FieldAddr); ok {
			for _, value := range p.storedAt(field) {
				if p.isOfStatus(value) {
					return false
				}
			}
		}
	}
	return true
}

// isOfStatus reports whether the value is a part of a status.
func (p *program) isOfStatus(value ssa.Value) (found bool) {
	p.sources(value, func(source ssa.Value) {
		load, ok := source.(*ssa.UnOp)
		if !ok {
			return
		}
		for address, ok := load.X.(*ssa.FieldAddr); ok; address, ok = address.X.(*ssa.FieldAddr) {
			found = found || fieldOf(address).Name() == "Status"
		}
	})
	return found
}

// aliases are the values that are the same pointer as the given one: in variables, in function literals, as interfaces,
// and as parameters of functions of the package.
func (p *program) aliases(value ssa.Value) map[ssa.Value]bool {
	found := map[ssa.Value]bool{}
	var follow func(v ssa.Value)
	follow = func(v ssa.Value) {
		if found[v] {
			return
		}
		found[v] = true
		for _, user := range refersTo(v) {
			switch user := user.(type) {
			case *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.TypeAssert, *ssa.Phi, *ssa.MakeClosure,
				ssa.CallInstruction:
				for _, next := range p.next(v, user) {
					follow(next)
				}
			case *ssa.Extract:
				if _, ok := types.Unalias(user.Type()).(*types.Basic); !ok {
					follow(user)
				}
			case *ssa.Store:
				if variable, ok := user.Addr.(*ssa.Alloc); ok && user.Val == v {
					p.followVariable(variable, variable, follow)
				}
			}
		}
	}
	follow(value)
	return found
}

// followVariable follows what is loaded from the variable, if one value only is stored in it. Address is that of the
// variable, in its function or in a literal.
func (p *program) followVariable(variable *ssa.Alloc, address ssa.Value, follow func(v ssa.Value)) {
	if len(p.storedAt(variable)) != 1 {
		return
	}
	for _, user := range refersTo(address) {
		switch user := user.(type) {
		case *ssa.UnOp:
			follow(user)
		case *ssa.MakeClosure:
			for _, free := range p.next(address, user) {
				p.followVariable(variable, free, follow)
			}
		}
	}
}
