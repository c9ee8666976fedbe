package behavior_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxShare is how many lines the operator may have, as a share of those of the bare one.
const maxShare = 0.6

// TestLines compares what an author writes. The types of the API, the registry and main.go are the same for both.
func TestLines(t *testing.T) {
	short, bare := linesOf(t, "../controller"), linesOf(t, "../bare")
	share := float64(short) / float64(bare)
	t.Logf("controller: %d lines, bare: %d lines, which is %.1f %%", short, bare, 100*share)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("| `bare` | %d |\n| `controller` | %d |\n", bare, short)
	if !strings.Contains(string(readme), table) {
		t.Errorf("README.md has other numbers, want\n%s", table)
	}
	if share > maxShare {
		t.Errorf("controller has %d lines and bare %d, want at most %.0f %%", short, bare, 100*maxShare)
	}
}

// linesOf counts the lines of code of a package: those with a token that is part of a declaration. Blank lines,
// comments, the package clause, imports and tests do not count.
func linesOf(t *testing.T, folder string) int {
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

func linesIn(t *testing.T, name string, source []byte) int {
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

func TestLinesIn(t *testing.T) {
	const source = `// Package p is not counted.
package p

import (
	"fmt"
	"fmt"
)

// A comment is not counted.
func f() { // This line is.

	/* Nor is
	this. */
	fmt.Println(` + "`two\n\tlines`" + `)
}

var x = 1; var y = 2
`
	if got := linesIn(t, "p.go", []byte(source)); got != 5 {
		t.Errorf("%d lines are counted, want 5", got)
	}
}
