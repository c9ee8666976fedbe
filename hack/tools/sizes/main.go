// Command sizes checks that Go files stay readable: no line is wider than 120 columns (a tab counts 4), no function is
// longer than 60 lines, and no file longer than 500. The Go files that the comment of a package names exist, seen from
// its folder, from the folder above, or from the root. Tests, generated files and test data are not checked, nor are
// lines that a tool reads (//go:generate, //lint:ignore, // +kubebuilder). It takes the folder of the repository,
// prints each violation on a line, and exits with 1 if there is any.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/hack/tools/internal/gofiles"
)

const (
	maxColumns       = 120
	tabColumns       = 4
	maxFunctionLines = 60
	maxFileLines     = 500
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sizes FOLDER")
		os.Exit(2)
	}
	violations, err := checkFolder(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(2)
	}
	for _, violation := range violations {
		fmt.Println(violation)
	}
	if len(violations) > 0 {
		os.Exit(1)
	}
}

// checkFolder checks all Go files of a folder, in the order of their paths.
func checkFolder(root string) (violations []string, err error) {
	err = gofiles.Walk(root, func(file string, source []byte) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		found, err := checkFile(file, source, func(name string) bool {
			for _, folder := range []string{path.Dir(file), path.Dir(path.Dir(file)), "."} {
				if _, err := os.Stat(filepath.Join(root, folder, name)); err == nil {
					return true
				}
			}
			return false
		})
		violations = append(violations, found...)
		return err
	})
	return violations, err
}

// goFile is a Go file that a comment names, not a pattern such as zz_*.go.
var goFile = regexp.MustCompile(`(?:^|[\s("'\x60])([\w./-]*\w\.go)\b(\.\w)?`)

// checkFile checks a file. The function exists says whether the repository has another file.
func checkFile(file string, source []byte, exists func(name string) bool) (violations []string, err error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(syntax) {
		return nil, err
	}
	report := func(line int, format string, args ...any) {
		violations = append(violations, fmt.Sprintf("%s:%d: ", file, line)+fmt.Sprintf(format, args...))
	}
	for _, named := range goFile.FindAllStringSubmatch(syntax.Doc.Text(), -1) {
		if named[2] == "" && !exists(named[1]) {
			line := set.Position(syntax.Doc.Pos()).Line
			report(line, "the comment of the package names %s, which does not exist", named[1])
		}
	}
	number := 0
	for line := range strings.Lines(string(source)) {
		number++
		if n := columns(line); n > maxColumns && !isForTools(line) {
			report(number, "the line has %d columns", n)
		}
	}
	for _, declaration := range syntax.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			first := set.Position(function.Pos()).Line
			if n := set.Position(function.End()).Line - first + 1; n > maxFunctionLines {
				report(first, "%s has %d lines", function.Name.Name, n)
			}
		}
	}
	if number > maxFileLines {
		report(number, "the file has %d lines", number)
	}
	return violations, nil
}

func columns(line string) int {
	return utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) + (tabColumns-1)*strings.Count(line, "\t")
}

var toolPrefixes = []string{"//go:", "//lint:", "// +kubebuilder:", "//+kubebuilder:"}

func isForTools(line string) bool {
	line = strings.TrimSpace(line)
	return slices.ContainsFunc(toolPrefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}
