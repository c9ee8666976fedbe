package vet

import (
	"maps"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/espalier-dev/espalier/internal/switchfield"
)

// Switches finds fields that are set both by a switch and by hand.
var Switches = &analysis.Analyzer{
	Name: "switches",
	Doc: "report a field that is set by hand, and that a switch or the short form sets\n\n" +
		"Tune is for the fields that no switch of Owns or OwnsEach sets. The set-up of the node refuses\n" +
		"another one, and so does that of a literal which has both an object manager and the fields of its\n" +
		"short form.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runSwitches,
}

func runSwitches(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	for _, handed := range p.handed {
		if handed.role == "Owns" || handed.role == "OwnsEach" {
			p.checkTuned(r, p.switchesOf(handed.by))
		}
	}
	p.each(func(instruction ssa.Instruction) {
		if literal, ok := instruction.(*ssa.Alloc); ok {
			p.checkShortForm(r, literal)
		}
	})
	r.report()
	return nil, nil
}

// checkTuned reports the fields that the functions of Tune set though a switch does.
func (p *program) checkTuned(r *reporter, used map[string]*ssa.Call) {
	tune := used["Tune"]
	if tune == nil {
		return
	}
	for _, f := range p.resolve(tune.Call.Args[1]) {
		got := parameters(f)
		if len(got) == 0 {
			continue
		}
		for name, store := range p.fieldsSet(got[0]) {
			if instead, ok := switchfield.SetBy[name]; ok {
				r.add(positionOf(store), "Tune must not set %s: use %s", name, instead)
			}
			for _, taken := range switchfield.TakenBy {
				if used[taken.Switch] != nil && slices.Contains(taken.Fields, name) {
					r.add(positionOf(store), "Tune must not set %s together with %s", name, taken.Switch)
				}
			}
		}
	}
}

// checkShortForm reports an object manager in a literal that has fields of the short form of one.
func (p *program) checkShortForm(r *reporter, literal *ssa.Alloc) {
	named := namedOf(literal.Type())
	if named == nil || !isOurs(named.Obj()) {
		return
	}
	short := []string{"MergeBeforeUpdate", "Sanitize"}
	if named.Obj().Name() == "ChildReconciler" {
		short = append(short, "Finalizer")
	}
	set := p.fieldsSet(literal)
	for _, manager := range []string{"ChildObjectManager", "AggregateObjectManager"} {
		for _, field := range short {
			if set[manager] != nil && set[field] != nil && runTogether(set[manager], set[field]) {
				r.add(positionOf(set[field]), "%s and %s must not both be set", manager, field)
			}
		}
	}
}

// runTogether reports whether one of the instructions runs only after the other. Those of another function may.
func runTogether(a, b ssa.Instruction) bool {
	return a.Parent() != b.Parent() || a.Block().Dominates(b.Block()) || b.Block().Dominates(a.Block())
}

// fieldsSet are the fields of the struct that are set to anything but their zero value, alone or by another literal.
func (p *program) fieldsSet(struc ssa.Value) map[string]*ssa.Store {
	found := map[string]*ssa.Store{}
	all := p.aliases(struc)
	for _, alias := range slices.Collect(maps.Keys(all)) {
		for _, value := range p.storedAt(alias) {
			if load, ok := value.(*ssa.UnOp); ok {
				maps.Copy(all, p.aliases(load.X))
			}
		}
	}
	for alias := range all {
		for _, user := range refersTo(alias) {
			address, ok := user.(*ssa.FieldAddr)
			if !ok {
				continue
			}
			for _, setter := range refersTo(address) {
				if store, ok := setter.(*ssa.Store); ok && store.Addr == address && !isZero(store.Val) {
					found[fieldOf(address).Name()] = store
				}
			}
		}
	}
	return found
}

func isZero(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.Value == nil || c.Value.String() == "false" || c.Value.String() == `""` || c.Value.String() == "0")
}

// switchesOf are the methods that the package calls on the node that the call returns, by their names. It has all
// calls in which the node, or what such a method returns, gets.
func (p *program) switchesOf(call *ssa.Call) map[string]*ssa.Call {
	found := map[string]*ssa.Call{}
	if call == nil {
		return found
	}
	p.flow(call, func(_ ssa.Value, by ssa.Instruction) []ssa.Value {
		call, ok := by.(*ssa.Call)
		if !ok || !isOurs(calleeOf(call)) || namedOf(call.Type()) == nil || !isOurs(namedOf(call.Type()).Obj()) {
			return nil
		}
		found[calleeOf(call).Name()] = call
		return []ssa.Value{call}
	})
	return found
}
