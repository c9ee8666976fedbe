package vet

import (
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Clients finds nodes that write by another client than that of the request.
var Clients = &analysis.Analyzer{
	Name: "clients",
	Doc: "report a node that writes by a client that it has captured\n\n" +
		"The config on the context is that of the tree, or of the WithConfig around the node: what it writes is\n" +
		"observed, and tests expect it. A client in a field or variable passes that by. A client of another\n" +
		"cluster is meant to, so this analyzer guesses, and only runs if it is asked for.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runClients,
}

func runClients(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	for _, handed := range p.handed {
		if resourceOf(handed.function) == nil {
			continue
		}
		k := p.keepingOf(r, handed)
		for f := range k.own {
			eachOf(f, func(instruction ssa.Instruction) {
				call, ok := instruction.(ssa.CallInstruction)
				if ok && isWrite(call.Common()) && k.outlives(writerOf(call.Common())) {
					r.add(call.Pos(), "the function given to %s writes by a client that it has captured: use that of "+
						"RetrieveConfigOrDie", handed.role)
				}
			})
		}
	}
	r.report()
	return nil, nil
}

// isWrite reports whether the call is one of a method of a client that writes.
func isWrite(call *ssa.CallCommon) bool {
	return call.IsInvoke() && call.Method.Pkg() != nil &&
		call.Method.Pkg().Path() == "sigs.k8s.io/controller-runtime/pkg/client" && slices.Contains(
		[]string{"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf"}, call.Method.Name())
}

// writerOf is the client whose method is called, also for its writer of the status.
func writerOf(call *ssa.CallCommon) ssa.Value {
	if status, ok := call.Value.(*ssa.Call); ok && status.Call.IsInvoke() {
		return status.Call.Value
	}
	return call.Value
}
