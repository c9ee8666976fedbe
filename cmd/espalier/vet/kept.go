package vet

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Kept finds what a function keeps or changes though it is not its own.
var Kept = &analysis.Analyzer{
	Name: "kept",
	Doc: "report a resource, child or context that is kept or changed after hand-over\n\n" +
		"The resource and the context that a function gets are those of one request. The next request has\n" +
		"others, and requests for other resources run beside it. So a function must not keep them in a\n" +
		"variable or field that outlives the call, nor use them in a goroutine that it does not wait for. A\n" +
		"function that looks at a child must not change it. A desired function must return an object of its\n" +
		"own, since the node changes it: a copy of one that the program keeps.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runKept,
}

func runKept(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	for _, handed := range p.handed {
		k := p.keepingOf(r, handed)
		if resourceOf(handed.function) != nil {
			for _, parameter := range parameters(handed.function) {
				if isContext(parameter.Type()) || isObject(parameter.Type()) {
					k.checkKept(parameter)
				}
			}
		}
		got := parameters(handed.function)
		if i, ok := lookedAt[handed.role]; ok && i < len(got) {
			k.checkChanged(got[i])
		}
		if slices.Contains(desiredRoles, handed.role) && p.switchesOf(handed.by)["ReadOnly"] == nil {
			k.checkReturned()
		}
	}
	r.report()
	return nil, nil
}

// lookedAt are the places of a child among the parameters of functions that must not change it, by their roles.
var lookedAt = map[string]int{
	"ReflectChildStatusOnParent": 2, "ReflectChildStatusOnParentWithError": 2,
	"ReflectChildStatusOnParentWithResult": 2, "ReflectChildrenStatusOnParent": 2,
	"ReflectChildrenStatusOnParentWithError": 2, "ReflectChildrenStatusOnParentWithResult": 2, "Observes": 2,
	"ChildIsReady": 1, "OurChild": 1, "IdentifyChild": 0, "Health": 0, "Yield": 0,
}

// checkKept reports where the parameter gets into what outlives the call.
func (k *keeping) checkKept(parameter *ssa.Parameter) {
	what := "resource"
	if isContext(parameter.Type()) {
		what = "context"
	} else if parameter != resourceOf(k.handed.function) {
		what = "child"
	}
	within := k.within(parameter)
	for value := range within {
		for _, user := range refersTo(value) {
			if k.keeps(value, user) {
				k.add(positionOf(user), "the function given to %s keeps the %s, which is that of one request",
					k.handed.role, what)
			}
		}
	}
	isWithin := func(v ssa.Value) bool { return within[v] }
	for f := range k.own {
		eachOf(f, func(instruction ssa.Instruction) {
			if slices.ContainsFunc(startedBy(instruction), isWithin) && !waits(f) {
				k.add(instruction.Pos(),
					"the goroutine may outlive the request, and uses its %s: wait for it, or copy", what)
			}
		})
	}
}

// within are the aliases of the value, and of what contains it: a slice, a struct, a derived context.
func (k *keeping) within(value ssa.Value) map[ssa.Value]bool {
	found := map[ssa.Value]bool{}
	var add func(v ssa.Value)
	add = func(v ssa.Value) {
		for alias := range k.aliases(v) {
			if found[alias] {
				continue
			}
			found[alias] = true
			for _, user := range refersTo(alias) {
				for _, container := range k.containersOf(alias, user) {
					add(container)
				}
			}
		}
	}
	add(value)
	return found
}

// containersOf are the values that contain v because of the instruction. A function literal contains what it captures,
// if the variable has one value.
func (k *keeping) containersOf(v ssa.Value, user ssa.Instruction) (containers []ssa.Value) {
	switch user := user.(type) {
	case *ssa.Store:
		made := madeAt(user.Addr)
		switch {
		case made == nil || user.Val != v:
		case user.Addr != ssa.Value(made):
			return []ssa.Value{made}
		case len(k.storedAt(made)) == 1:
			for _, literal := range refersTo(made) {
				if closure, ok := literal.(*ssa.MakeClosure); ok {
					containers = append(containers, closure)
				}
			}
		}
	case *ssa.Slice, *ssa.MakeClosure:
		return []ssa.Value{user.(ssa.Value)}
	case *ssa.UnOp:
		if _, ok := v.(*ssa.Alloc); ok {
			return []ssa.Value{user}
		}
	case *ssa.MapUpdate:
		if made, ok := user.Map.(*ssa.MakeMap); ok {
			return []ssa.Value{made}
		}
	case *ssa.Call:
		if isAppend(user) {
			return []ssa.Value{user}
		}
		if f := calleeOf(user); f != nil && f.Pkg() != nil && f.Pkg().Path() == "context" {
			return []ssa.Value{user}
		}
	}
	return containers
}

func isAppend(call *ssa.Call) bool {
	builtin, ok := call.Call.Value.(*ssa.Builtin)
	return ok && builtin.Name() == "append"
}

// elements are the values that the slice or array is made of.
func (p *program) elements(list ssa.Value) (values []ssa.Value) {
	switch v := list.(type) {
	case *ssa.Slice:
		return []ssa.Value{v.X}
	case *ssa.Call:
		if isAppend(v) {
			return v.Call.Args
		}
	case *ssa.Alloc:
		for _, user := range refersTo(v) {
			if address, ok := user.(*ssa.IndexAddr); ok {
				values = append(values, p.storedAt(address)...)
			}
		}
	}
	return values
}

// keeps reports whether the instruction puts the value into what outlives the call.
func (k *keeping) keeps(value ssa.Value, user ssa.Instruction) bool {
	switch user := user.(type) {
	case *ssa.Store:
		return user.Val == value && k.outlives(user.Addr)
	case *ssa.MapUpdate:
		return (user.Value == value || user.Key == value) && k.outlives(user.Map)
	case *ssa.Send:
		return user.X == value && k.outlives(user.Chan)
	case *ssa.Select:
		return slices.ContainsFunc(user.States, func(s *ssa.SelectState) bool {
			return s.Send == value && k.outlives(s.Chan)
		})
	case *ssa.Call:
		f := user.Call.StaticCallee()
		if f == nil || f.Object() == nil || f.Object().Pkg() == nil || f.Signature.Recv() == nil {
			return false
		}
		path := f.Object().Pkg().Path()
		return (path == "sync" || path == "sync/atomic") &&
			slices.Contains([]string{"Store", "Swap", "LoadOrStore", "CompareAndSwap"}, f.Object().Name()) &&
			slices.Contains(user.Call.Args[1:], value) && k.outlives(user.Call.Args[0])
	}
	return false
}

// waits reports whether the function waits for goroutines, or for what they send.
func waits(f *ssa.Function) (found bool) {
	eachOf(f, func(instruction ssa.Instruction) {
		switch i := instruction.(type) {
		case *ssa.UnOp:
			found = found || i.Op == token.ARROW
		case *ssa.Select:
			found = true
		case ssa.CallInstruction:
			callee := i.Common().StaticCallee()
			found = found || callee != nil && callee.Name() == "Wait" ||
				i.Common().IsInvoke() && i.Common().Method.Name() == "Wait"
		}
	})
	return found
}

// startedBy are the function and the arguments of the goroutine that the instruction starts.
func startedBy(instruction ssa.Instruction) []ssa.Value {
	switch i := instruction.(type) {
	case *ssa.Go:
		return append([]ssa.Value{i.Call.Value}, i.Call.Args...)
	case *ssa.Call:
		if f := i.Call.StaticCallee(); f != nil && f.String() == "time.AfterFunc" {
			return i.Call.Args[1:]
		}
	}
	return nil
}

// checkChanged reports where the function changes the child.
func (k *keeping) checkChanged(child *ssa.Parameter) {
	seen := map[ssa.Value]bool{}
	var check func(v ssa.Value)
	check = func(v ssa.Value) {
		for part := range k.aliases(v) {
			if seen[part] {
				continue
			}
			seen[part] = true
			for _, user := range refersTo(part) {
				if changes(part, user) {
					k.add(positionOf(user), "the function given to %s must not change the child", k.handed.role)
				}
				switch user := user.(type) {
				case *ssa.FieldAddr, *ssa.IndexAddr:
					check(user.(ssa.Value))
				case *ssa.UnOp:
					if isReference(user) {
						check(user)
					}
				case *ssa.Store:
					if _, result := part.Type().Underlying().(*types.Struct); result && user.Val == part {
						check(user.Addr)
					}
				case *ssa.Call:
					if f := user.Call.StaticCallee(); f != nil && isOurs(f.Object()) && f.Name() == "Existing" {
						check(user)
					}
				}
			}
		}
	}
	check(child)
}

// changes reports whether the instruction changes what v points to.
func changes(v ssa.Value, user ssa.Instruction) bool {
	switch user := user.(type) {
	case *ssa.Store:
		return user.Addr == v && madeAt(v) == nil
	case *ssa.MapUpdate:
		return user.Map == v
	case ssa.CallInstruction:
		common := user.Common()
		if common.IsInvoke() {
			return common.Value == v && strings.HasPrefix(common.Method.Name(), "Set")
		}
		if len(common.Args) == 0 || common.Args[0] != v {
			return false
		}
		if builtin, ok := common.Value.(*ssa.Builtin); ok {
			return builtin.Name() == "delete" || builtin.Name() == "clear" || builtin.Name() == "copy"
		}
		f := common.StaticCallee()
		return f != nil && f.Signature.Recv() != nil && len(f.Blocks) == 0 && strings.HasPrefix(f.Name(), "Set")
	}
	return false
}

// checkReturned reports where the desired function returns an object that it does not make.
func (k *keeping) checkReturned() {
	eachOf(k.handed.function, func(instruction ssa.Instruction) {
		end, ok := instruction.(*ssa.Return)
		if !ok || len(end.Results) == 0 || !hasObjects(end.Results[0].Type()) {
			return
		}
		if k.isShared(end.Results[0], map[ssa.Value]bool{}) {
			k.add(positionOf(end), "the function given to %s returns an object that outlives the request, and that "+
				"the node may change: return a copy", k.handed.role)
		}
	})
}

// isShared reports whether the object, or an object of the list, outlives the call.
func (k *keeping) isShared(v ssa.Value, seen map[ssa.Value]bool) bool {
	if v == nil || seen[v] {
		return false
	}
	seen[v] = true
	from := k.elements(v)
	if _, ok := v.(*ssa.Parameter); !ok {
		from = slices.Concat(from, k.origins(v))
	}
	return k.outlives(v) || slices.ContainsFunc(from, func(v ssa.Value) bool { return k.isShared(v, seen) })
}

// hasObjects reports whether the type is one of API objects, or of lists of them.
func hasObjects(t types.Type) bool {
	if list, ok := t.Underlying().(*types.Slice); ok {
		t = list.Elem()
	}
	return isObject(t)
}
