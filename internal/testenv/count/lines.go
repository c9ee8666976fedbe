// Package count counts what the author of an operator writes, and has to know for it.
package count

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines counts the lines of code of a package: those with a token that is part of a declaration. Blank lines,
// comments, the package clause, imports and tests do not count.
func Lines(t testing.TB, folder string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += linesIn(t, name, source)
	}
	if total == 0 {
		t.Fatalf("there is no code in %s, want some", folder)
	}
	return total
}

func linesIn(t testing.TB, name string, source []byte) int {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := parsed.Name.End()
	for _, declaration := range parsed.Decls {
		if imports, ok := declaration.(*ast.GenDecl); ok && imports.Tok == token.IMPORT {
			start = imports.End()
		}
	}
	first := fset.Position(start).Offset

	file := token.NewFileSet().AddFile(name, -1, len(source))
	var tokens scanner.Scanner
	tokens.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := tokens.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if file.Offset(pos) < first || tok == token.SEMICOLON {
			continue
		}
		// A raw string may have several lines.
		for i := range 1 + strings.Count(literal, "\n") {
			lines[file.Line(pos)+i] = true
		}
	}
}
