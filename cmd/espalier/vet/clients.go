package vet

import (
	"slices"
	"strings"

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
				if call, ok := instruction.(ssa.CallInstruction); ok {
					k.checkWriter(writerOf(call.Common()), call, map[ssa.Value]bool{})
				}
			})
		}
	}
	r.report()
	return nil, nil
}

// checkWriter reports the call if the writer outlives it. If the writer is what a helper is given, the calls of the
// helper are looked at instead: others may give it the client of the request.
func (k *keeping) checkWriter(writer ssa.Value, call ssa.CallInstruction, seen map[ssa.Value]bool) {
	writer = receiverOf(writer)
	parameter, ok := writer.(*ssa.Parameter)
	if !ok || parameter.Parent() == k.handed.function || isReceiver(parameter) {
		if writer != nil && k.outlives(writer) {
			k.add(call.Pos(), "the function given to %s writes by a client that it has captured: use that of "+
				"RetrieveConfigOrDie", k.handed.role)
		}
		return
	}
	if seen[parameter] {
		return
	}
	seen[parameter] = true
	for _, caller := range k.calls[parameter.Parent()] {
		if i := slices.Index(parameter.Parent().Params, parameter); k.own[caller.Parent()] {
			k.checkWriter(caller.Common().Args[i], caller, seen)
		}
	}
}

// writes are the methods of clients that write, and the functions that do so by a client that they get.
var writes = []string{
	"Create", "Update", "UpdateStatus", "Patch", "Apply", "ApplyStatus", "Delete", "DeleteAllOf", "DeleteCollection",
	"CreateOrUpdate", "CreateOrPatch",
}

// writerOf is the client by which the call writes, also its writer of the status, or nil if the call does not write.
func writerOf(call *ssa.CallCommon) ssa.Value {
	if f := call.StaticCallee(); f != nil && f.Pkg != nil && slices.Contains(writes, f.Name()) &&
		f.Pkg.Pkg.Path() == "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil" {
		return call.Args[1]
	}
	if !call.IsInvoke() || call.Method.Pkg() == nil || !slices.Contains(writes, call.Method.Name()) {
		return nil
	}
	path := call.Method.Pkg().Path()
	if path == clientPackage || path == "k8s.io/client-go/dynamic" ||
		strings.HasPrefix(path, "k8s.io/client-go/kubernetes/typed/") {
		return call.Value
	}
	return nil
}

// receiverOf is what the value comes from by calls of methods of interfaces: the client of its writer of the status.
func receiverOf(v ssa.Value) ssa.Value {
	if call, ok := v.(*ssa.Call); ok && call.Call.IsInvoke() {
		return receiverOf(call.Call.Value)
	}
	return v
}
