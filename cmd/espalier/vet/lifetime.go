package vet

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// keeping looks at one function that Espalier calls.
type keeping struct {
	*program
	*reporter
	handed handedOver
	// own are the functions that run in a call of this one. Their variables do not outlive it.
	own map[*ssa.Function]bool
}

func (p *program) keepingOf(r *reporter, handed handedOver) *keeping {
	k := &keeping{program: p, reporter: r, handed: handed, own: map[*ssa.Function]bool{}}
	for _, f := range p.reached(handed.function) {
		k.own[f] = true
	}
	return k
}

// outlives reports whether the value refers to what outlives a call of the function, or is a part of that: an address,
// a map, a channel, or an object.
func (k *keeping) outlives(v ssa.Value) bool {
	seen := map[ssa.Value]bool{}
	var does func(v ssa.Value) bool
	does = func(v ssa.Value) bool {
		if v == nil || seen[v] {
			return false
		}
		seen[v] = true
		switch v := v.(type) {
		case *ssa.Global:
			return true
		case *ssa.Alloc:
			return !k.own[v.Parent()]
		case *ssa.Parameter:
			if !k.own[v.Parent()] || isReceiver(v) && v.Parent() == k.handed.function {
				return true
			}
			given := k.given(v, k.own)
			return isReceiver(v) && len(given) == 0 || slices.ContainsFunc(given, does)
		case *ssa.FieldAddr:
			return does(v.X)
		case *ssa.Field:
			return does(v.X)
		case *ssa.IndexAddr:
			return does(v.X)
		case *ssa.Lookup:
			return does(v.X)
		case *ssa.UnOp:
			if made := madeAt(v.X); made != nil && k.own[made.Parent()] {
				return slices.ContainsFunc(slices.Concat(k.storedAt(v.X), k.storedAt(made)), does)
			}
			return does(v.X)
		case *ssa.Extract:
			switch tuple := v.Tuple.(type) {
			case *ssa.Lookup:
				return does(tuple)
			case *ssa.Next:
				loop, ok := tuple.Iter.(*ssa.Range)
				return ok && does(loop.X)
			case *ssa.Call:
				if isOurs(calleeOf(tuple)) {
					return false
				}
			}
		case *ssa.Call:
			if isOurs(calleeOf(v)) {
				return false // What Espalier returns is of the request.
			}
		}
		return slices.ContainsFunc(k.origins(v), does)
	}
	return does(v)
}

// isReceiver reports whether the parameter is the receiver of a method.
func isReceiver(parameter *ssa.Parameter) bool {
	return parameter.Parent().Signature.Recv() != nil && parameter == parameter.Parent().Params[0]
}
