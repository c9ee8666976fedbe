package vet

import (
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Effects finds effects outside of the cluster that no finalizer guards.
var Effects = &analysis.Analyzer{
	Name: "effects",
	Doc: "report an effect outside of the cluster before the node with the finalizer\n\n" +
		"A resource that is deleted before it has a finalizer is gone at once, and what was made for it outside\n" +
		"of the cluster stays. What has an effect, and what is only asked, is a guess: HTTP requests but by\n" +
		"http.Get, programs, files and statements of SQL count. So this analyzer only runs if it is asked for.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runEffects,
}

// effects are functions and methods with an effect, by the name of their package and theirs.
var effects = []string{
	"net/http.Post", "net/http.PostForm", "(*net/http.Client).Do", "(*net/http.Client).Post",
	"(*net/http.Client).PostForm", "(*os/exec.Cmd).Run", "(*os/exec.Cmd).Start", "(*os/exec.Cmd).Output",
	"(*os/exec.Cmd).CombinedOutput", "os.Create", "os.WriteFile", "os.Mkdir", "os.MkdirAll", "os.Remove",
	"os.RemoveAll", "os.Rename", "(*database/sql.DB).Exec", "(*database/sql.DB).ExecContext",
}

func runEffects(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	p.each(func(instruction ssa.Instruction) {
		var steps []step
		switch tree := instruction.(type) {
		case *ssa.Alloc:
			steps = p.stepsOf(tree)
		case *ssa.Call:
			steps = p.stepsOf(tree)
		}
		guard := slices.IndexFunc(steps, func(s step) bool { return s.finalizes })
		for i := range max(guard, 0) {
			p.reportEffects(r, steps[i])
		}
	})
	r.report()
	return nil, nil
}

func (p *program) reportEffects(r *reporter, s step) {
	for _, function := range s.functions {
		for _, called := range p.reached(function) {
			eachOf(called, func(instruction ssa.Instruction) {
				call, ok := instruction.(ssa.CallInstruction)
				if !ok || call.Common().StaticCallee() == nil {
					return
				}
				if callee := call.Common().StaticCallee().String(); slices.Contains(effects, callee) {
					r.add(s.at, "an effect outside of the cluster, %s, before the node with the finalizer", callee)
				}
			})
		}
	}
}

// step is what a tree does in its order: it puts a finalizer on the resource, or calls functions of a node.
type step struct {
	finalizes bool
	functions []*ssa.Function
	at        token.Pos
}

// stepsOf are the steps of a tree: a literal, a list of nodes, or a function of the short form with its switches. What
// a node with a finalizer does itself is no step, nor is what one of two branches does.
func (p *program) stepsOf(tree ssa.Value) (steps []step) {
	p.walk(tree, func(source ssa.Value) []ssa.Value {
		switch v := source.(type) {
		case *ssa.Slice:
			return []ssa.Value{v.X}
		case *ssa.FieldAddr:
			return []ssa.Value{v.X}
		case *ssa.Alloc:
			if nodes := p.nodesIn(v); nodes != nil {
				return nodes
			}
			s, nested := p.literal(v)
			steps = append(steps, s)
			return nested
		case *ssa.Call:
			s, nested := p.shortForm(v)
			steps = append(steps, s)
			return nested
		}
		return nil
	})
	return steps
}

// nodesIn are the nodes that are stored in an array, in their order.
func (p *program) nodesIn(array *ssa.Alloc) (nodes []ssa.Value) {
	at := map[int64][]ssa.Value{}
	for _, user := range refersTo(array) {
		address, ok := user.(*ssa.IndexAddr)
		if !ok || namedOf(address.Type()) == nil || namedOf(address.Type()).Obj().Name() != "SubReconciler" {
			continue
		}
		if index, ok := address.Index.(*ssa.Const); ok {
			at[index.Int64()] = p.storedAt(address)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(at)) {
		nodes = append(nodes, at[index]...)
	}
	return nodes
}

// literal returns what a literal of a node does before the nodes in it, and these.
func (p *program) literal(node *ssa.Alloc) (s step, nested []ssa.Value) {
	named := namedOf(node.Type())
	if named == nil || !isOurs(named.Obj()) {
		return step{}, nil
	}
	if named.Obj().Name() == "WithFinalizer" {
		return step{finalizes: true}, nil
	}
	s.at = node.Pos()
	set := p.fieldsSet(node)
	for _, name := range []string{"Sync", "SyncWithResult", "Before"} {
		if store := set[name]; store != nil {
			s.functions = append(s.functions, p.resolve(store.Val)...)
		}
	}
	for _, name := range []string{"Try", "Then", "Reconciler", "Nodes"} {
		if store := set[name]; store != nil {
			nested = append(nested, store.Val)
		}
	}
	return s, nested
}

// shortForm returns what a call of the short form does, and the nodes that it gets.
func (p *program) shortForm(call *ssa.Call) (s step, nested []ssa.Value) {
	if isAppend(call) {
		return step{}, call.Call.Args
	}
	f := call.Call.StaticCallee()
	if f == nil || !isOurs(f.Object()) || len(call.Call.Args) == 0 {
		return step{}, nil
	}
	switch {
	case f.Object().Name() == "Finalizes":
		return step{finalizes: true}, nil
	case f.Object().Name() == "Runs":
		return step{functions: p.resolve(call.Call.Args[1]), at: call.Pos()}, nil
	case f.Signature.Recv() != nil:
		return step{}, call.Call.Args[:1]
	}
	for _, argument := range call.Call.Args {
		if _, ok := argument.Type().Underlying().(*types.Slice); ok {
			nested = append(nested, argument)
		}
	}
	return step{}, nested
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
