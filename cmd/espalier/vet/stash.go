package vet

import (
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Stash finds values of the stash that nobody stores.
var Stash = &analysis.Analyzer{
	Name: "stash",
	Doc: "report a value of the stash that is read, and that nobody stores\n\n" +
		"A package reads it by a key that only this package knows, and no node of the package stores it:\n" +
		"reading it panics, or returns an error or the zero value each time. Code of tests does not count.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runStash,
}

// stashUse is how a package uses the values of a key.
type stashUse struct {
	reads  []token.Pos
	stored bool
}

func runStash(pass *analysis.Pass) (any, error) {
	s := &stashes{program: programOf(pass), pass: pass, uses: map[string]*stashUse{}}
	s.each(func(instruction ssa.Instruction) {
		if call, ok := instruction.(*ssa.Call); ok {
			s.look(call)
		}
	})
	if s.uses[unknown] != nil && s.uses[unknown].stored {
		return nil, nil
	}
	r := newReporter(pass)
	for key, use := range s.uses {
		if use.stored || key == unknown || strings.HasPrefix(key, "reconciler.io/runtime:") || s.isKnownElsewhere(key) {
			continue
		}
		for _, at := range use.reads {
			r.add(at, "no node of this package stores the value of %q", key)
		}
	}
	r.report()
	return nil, nil
}

type stashes struct {
	*program
	pass *analysis.Pass
	uses map[string]*stashUse
}

// look notes the call if it makes a Stasher, or stores or reads a value by its key.
func (s *stashes) look(call *ssa.Call) {
	name := calledInStash(call)
	place, ok := map[string]int{
		"New": 0, "NewStasher": 0, "StoreValue": 1, "StashValue": 1, "RetrieveValue": 1,
	}[name]
	if !ok {
		return
	}
	for _, key := range s.keysOf(call.Call.Args[place]) {
		use := s.uses[key]
		if use == nil {
			use = &stashUse{}
			s.uses[key] = use
		}
		switch name {
		case "RetrieveValue":
			use.reads = append(use.reads, call.Pos())
		case "StoreValue", "StashValue":
			use.stored = use.stored || !inTest(s.pass, call.Pos())
		default:
			s.follow(call, use)
		}
	}
}

// calledInStash is the name of the function about the stash that is called, also by a variable of package reconcilers.
func calledInStash(call *ssa.Call) string {
	var object types.Object
	if f := call.Call.StaticCallee(); f != nil {
		object = f.Object()
	} else if load, ok := call.Call.Value.(*ssa.UnOp); ok {
		if global, ok := load.X.(*ssa.Global); ok {
			object = global.Object()
		}
	}
	if object != nil && object.Pkg() != nil &&
		(object.Pkg().Path() == module+"/stash" || object.Pkg().Path() == module+"/reconcilers") {
		return object.Name()
	}
	return ""
}

// unknown stands for a key that is no constant.
const unknown = ""

func (s *stashes) keysOf(value ssa.Value) (keys []string) {
	s.sources(value, func(source ssa.Value) {
		if call, ok := source.(*ssa.Call); ok && call.Call.IsInvoke() && call.Call.Method.Name() == "Key" {
			return // To have the key of a Stasher counts as storing its value.
		}
		key := unknown
		if c, ok := source.(*ssa.Const); ok && c.Value != nil && c.Value.Kind() == constant.String {
			key = constant.StringVal(c.Value)
		}
		keys = append(keys, key)
	})
	return keys
}

// follow notes what the package does with a Stasher.
func (s *stashes) follow(stasher ssa.Value, use *stashUse) {
	s.flow(stasher, func(v ssa.Value, by ssa.Instruction) []ssa.Value {
		switch by := by.(type) {
		case *ssa.Store:
			switch address := by.Addr.(type) {
			case *ssa.Global:
				use.stored = use.stored || token.IsExported(address.Name())
			case *ssa.FieldAddr:
				use.stored = use.stored || fieldOf(address).Exported()
			case *ssa.Alloc, *ssa.IndexAddr:
			default:
				use.stored = true
			}
		case *ssa.MakeClosure:
			if f := by.Fn.(*ssa.Function); f.Synthetic != "" && f.Object() != nil {
				s.noteMethod(f.Object().Name(), by.Pos(), use)
			}
		case *ssa.Return:
			use.stored = use.stored || by.Parent().Object() == nil || by.Parent().Object().Exported()
		case ssa.CallInstruction:
			s.noteCall(v, by, use)
		case *ssa.MapUpdate, *ssa.Send, *ssa.Select:
			use.stored = true
		}
		return nil
	})
}

// noteMethod notes the use of a method of a Stasher.
func (s *stashes) noteMethod(name string, at token.Pos, use *stashUse) {
	switch {
	case strings.HasPrefix(name, "Retrieve"):
		use.reads = append(use.reads, at)
	case name == "Has" || name == "Clear":
	default:
		use.stored = use.stored || !inTest(s.pass, at)
	}
}

func (s *stashes) noteCall(v ssa.Value, call ssa.CallInstruction, use *stashUse) {
	common := call.Common()
	if common.IsInvoke() && common.Value == v {
		s.noteMethod(common.Method.Name(), call.Pos(), use)
		return
	}
	f := s.body(common.StaticCallee())
	if f == nil || len(f.Blocks) == 0 && f.Name() != "Needs" {
		use.stored = use.stored || !inTest(s.pass, call.Pos())
	}
}

// isKnownElsewhere reports whether the package has the key from another one, or tells others of it.
func (s *stashes) isKnownElsewhere(key string) bool {
	for _, object := range s.pass.TypesInfo.Uses {
		if c, ok := object.(*types.Const); ok && c.Pkg() != s.pass.Pkg && isString(c, key) {
			return true
		}
	}
	scope := s.pass.Pkg.Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && c.Exported() && isString(c, key) {
			return true
		}
	}
	return false
}

func isString(c *types.Const, text string) bool {
	return c.Val().Kind() == constant.String && constant.StringVal(c.Val()) == text
}
