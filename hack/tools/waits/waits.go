package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// wait is a use of a function of the package time that waits.
type wait struct {
	path string
	line int
	// call is the function of the package time, and function the one around it.
	call, function string
}

// String says what is wrong with a wait that is not allowed.
func (w wait) String() string {
	return fmt.Sprintf("%s:%d: time.%s in %s waits for a time: wait for a fact (controlplanetest.Eventually), "+
		"or in a bubble of testing/synctest; %s is for what has to be in real time",
		w.path, w.line, w.call, w.function, allowedFile)
}

var waiting = []string{"Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// realWaits returns the waits in the test files that are in real time, in their order.
func (p *testPackage) realWaits() (waits []wait) {
	isVirtual := virtualTime(p)
	for _, file := range p.tests {
		for _, declaration := range file.Decls {
			ast.Inspect(declaration, func(n ast.Node) bool {
				path, name := p.qualified(n)
				if path == "time" && slices.Contains(waiting, name) && !isVirtual(n.Pos()) {
					position := p.set.Position(n.Pos())
					waits = append(waits, wait{position.Filename, position.Line, name, nameOf(declaration, n)})
				}
				return true
			})
		}
	}
	return waits
}

// nameOf returns the name of the function that is a declaration, or of the variable in it that has a node in its value.
func nameOf(declaration ast.Decl, n ast.Node) string {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		receiver, _, _ := strings.Cut(types.ExprString(d.Recv.List[0].Type), "[")
		return strings.TrimPrefix(receiver, "*") + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			values, _ := spec.(*ast.ValueSpec)
			for i := 0; values != nil && i < len(values.Values); i++ {
				if spanOf(values.Values[i]).contains(n.Pos()) {
					return values.Names[min(i, len(values.Names)-1)].Name
				}
			}
		}
	}
	return "a declaration"
}
