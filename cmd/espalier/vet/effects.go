package vet

import (
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
		list, ok := instruction.(*ssa.Alloc)
		if !ok {
			return
		}
		nodes := p.nodesOf(list)
		guard := slices.IndexFunc(nodes, func(n listed) bool { return n.finalizes })
		for i := range max(guard, 0) {
			for _, f := range nodes[i].functions {
				p.reportEffects(r, f)
			}
		}
	})
	r.report()
	return nil, nil
}

func (p *program) reportEffects(r *reporter, f *ssa.Function) {
	for _, called := range p.reached(f) {
		eachOf(called, func(instruction ssa.Instruction) {
			call, ok := instruction.(ssa.CallInstruction)
			if !ok || call.Common().StaticCallee() == nil {
				return
			}
			if callee := call.Common().StaticCallee().String(); slices.Contains(effects, callee) {
				r.add(call.Pos(), "an effect outside of the cluster, before the node with the finalizer")
			}
		})
	}
}

// listed is a node of a list: whether it puts a finalizer on the resource, and its functions.
type listed struct {
	finalizes bool
	functions []*ssa.Function
}

// nodesOf are the nodes that are stored in an array, in their order.
func (p *program) nodesOf(array *ssa.Alloc) []listed {
	nodes := map[int64]listed{}
	for _, user := range refersTo(array) {
		address, ok := user.(*ssa.IndexAddr)
		if !ok || namedOf(address.Type()) == nil || namedOf(address.Type()).Obj().Name() != "SubReconciler" {
			continue
		}
		index, ok := address.Index.(*ssa.Const)
		if !ok {
			continue
		}
		for _, stored := range p.storedAt(address) {
			nodes[index.Int64()] = p.nodeOf(stored)
		}
	}
	found := make([]listed, len(nodes))
	for i := range found {
		found[i] = nodes[int64(i)]
	}
	return found
}

// nodeOf looks at a node: a literal, or a function of the short form and its switches.
func (p *program) nodeOf(value ssa.Value) (node listed) {
	seen := map[ssa.Value]bool{}
	var visit func(source ssa.Value)
	visit = func(source ssa.Value) {
		if seen[source] {
			return
		}
		seen[source] = true
		switch v := source.(type) {
		case *ssa.Alloc:
			named := namedOf(v.Type())
			node.finalizes = node.finalizes || named != nil && named.Obj().Name() == "WithFinalizer"
			for name, store := range p.fieldsSet(v) {
				if name == "Sync" || name == "SyncWithResult" {
					node.functions = append(node.functions, p.resolve(store.Val)...)
				}
			}
		case *ssa.FieldAddr:
			p.sources(v.X, visit)
		case *ssa.Call:
			f := v.Call.StaticCallee()
			if f == nil || f.Object() == nil || len(v.Call.Args) == 0 {
				return
			}
			node.finalizes = node.finalizes || f.Name() == "Finalizes"
			if f.Object().Name() == "Runs" {
				node.functions = append(node.functions, p.resolve(v.Call.Args[1])...)
			} else if f.Signature.Recv() != nil {
				p.sources(v.Call.Args[0], visit)
			}
		}
	}
	p.sources(value, visit)
	return node
}
