// Package vet has analyzers for programs that use Espalier. They find what compiles and goes wrong in a cluster.
//
// The command "espalier vet" runs them, and golangci-lint as a plugin. They are exported for other drivers of package
// [golang.org/x/tools/go/analysis]. They look at one package at a time, and but for [Fixtures] not at files of tests.
package vet

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzers are the analyzers that run by default, in the order of the documentation.
var Analyzers = []*analysis.Analyzer{Desired, Kept, Status, Stash, Finalizer, Fixtures}

// Heuristics are analyzers that guess. Each runs if it is asked for by its name.
var Heuristics = []*analysis.Analyzer{Clients, Effects}

// reporter reports each thing once, though several functions may lead to it, and in the order of the code.
type reporter struct {
	pass  *analysis.Pass
	found map[token.Pos]string
	// tests is true if it also reports what is in files of tests.
	tests bool
}

func newReporter(pass *analysis.Pass) *reporter {
	return &reporter{pass: pass, found: map[token.Pos]string{}}
}

func (r *reporter) add(at token.Pos, format string, args ...any) {
	if at.IsValid() && r.found[at] == "" && (r.tests || !inTest(r.pass, at)) {
		r.found[at] = fmt.Sprintf(format, args...)
	}
}

func (r *reporter) report() {
	accepted := acceptedLines(r.pass)
	for _, at := range slices.Sorted(maps.Keys(r.found)) {
		if position := r.pass.Fset.Position(at); !accepted[line{position.Filename, position.Line}] {
			r.pass.Report(analysis.Diagnostic{Pos: at, Message: r.found[at]})
		}
	}
}

type line struct {
	file   string
	number int
}

// acceptedLines are the lines with a comment that accepts what the analyzer finds there, as golangci-lint knows it:
// //nolint:espalier for all analyzers, or with the name of this one.
func acceptedLines(pass *analysis.Pass) map[line]bool {
	found := map[line]bool{}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				names, ok := strings.CutPrefix(comment.Text, "//nolint:")
				names, _, _ = strings.Cut(names, " ")
				accepts := func(name string) bool { return name == "espalier" || name == pass.Analyzer.Name }
				if ok && slices.ContainsFunc(strings.Split(names, ","), accepts) {
					position := pass.Fset.Position(comment.Pos())
					found[line{position.Filename, position.Line}] = true
				}
			}
		}
	}
	return found
}

func inTest(pass *analysis.Pass, at token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(at).Filename, "_test.go")
}
