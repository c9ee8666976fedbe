package vet

import (
	"go/constant"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Finalizer finds finalizers that Kubernetes does not take.
var Finalizer = &analysis.Analyzer{
	Name: "finalizer",
	Doc: "report a finalizer without a domain\n\n" +
		"A finalizer is a domain and a path, such as shop.example.com/registration. The API server warns of\n" +
		"another one, or refuses it, and another controller may have the same, so that each removes that of\n" +
		"the other.",
	Requires: []*analysis.Analyzer{programs},
	Run:      runFinalizer,
}

// finalizerArguments are the places of finalizers among the arguments of functions, a receiver included.
var finalizerArguments = map[string]int{"Finalizes": 1, "AddFinalizer": 2}

// ofKubernetes are the finalizers without a domain that Kubernetes knows.
var ofKubernetes = []string{"orphan", "foregroundDeletion", "kubernetes"}

func runFinalizer(pass *analysis.Pass) (any, error) {
	p, r := programOf(pass), newReporter(pass)
	check := func(value ssa.Value, at ssa.Instruction) {
		p.sources(value, func(source ssa.Value) {
			c, ok := source.(*ssa.Const)
			if !ok || c.Value == nil || c.Value.Kind() != constant.String {
				return
			}
			name := constant.StringVal(c.Value)
			if name != "" && strings.Index(name, "/") < 1 && !slices.Contains(ofKubernetes, name) {
				r.add(positionOf(at), "the finalizer %q is not a domain and a path, such as example.com/cleanup", name)
			}
		})
	}
	p.each(func(instruction ssa.Instruction) {
		switch i := instruction.(type) {
		case *ssa.Store:
			address, ok := i.Addr.(*ssa.FieldAddr)
			if ok && fieldOf(address).Name() == "Finalizer" && isOurs(fieldOf(address)) {
				check(i.Val, i)
			}
		case ssa.CallInstruction:
			f := i.Common().StaticCallee()
			if f == nil || !isOurs(f.Object()) {
				return
			}
			if place, ok := finalizerArguments[f.Object().Name()]; ok && place < len(i.Common().Args) {
				check(i.Common().Args[place], i)
			}
		}
	})
	r.report()
	return nil, nil
}
