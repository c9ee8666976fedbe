package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/hack/tools/internal/golist"
)

// overlay is what "go build -overlay" reads: the files that replace those of a module, or are added to it.
type overlay struct {
	temp    string
	Replace map[string]string
}

func (o *overlay) add(file string, source []byte) error {
	replacement := filepath.Join(o.temp, strconv.Itoa(len(o.Replace))+".go")
	o.Replace[file] = replacement
	return os.WriteFile(replacement, source, 0o600)
}

func (o *overlay) write() (file string, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	file = filepath.Join(o.temp, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// instrument replaces the files of a package of the module in dir.
func (o *overlay) instrument(dir, module string, p golist.Package) error {
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		source, err = instrument(filepath.ToSlash(rel), source, module+"/"+notesFolder)
		if err != nil {
			return err
		}
		if err := o.add(file, source); err != nil {
			return err
		}
	}
	return nil
}

// instrument puts a call of Note at the start of each function of a file. Line numbers stay the same. A generated file
// is returned as it is, because it is not read.
func instrument(file string, source []byte, notes string) ([]byte, error) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(syntax) {
		return source, nil
	}
	var out bytes.Buffer
	copied, count := 0, 0
	insert := func(after token.Pos, format string, args ...any) {
		offset := set.Position(after).Offset
		out.Write(source[copied:offset])
		fmt.Fprintf(&out, format, args...)
		copied = offset
	}
	insert(syntax.Name.End(), "; import callpath %q", notes)
	for _, declaration := range syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		count++
		insert(function.Body.Lbrace+1, "callpath.Note(%q, %q);", file, nameOf(function))
	}
	if count == 0 {
		return source, nil
	}
	out.Write(source[copied:])
	return out.Bytes(), nil
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := strings.TrimLeft(types.ExprString(function.Recv.List[0].Type), "*")
	receiver, _, _ = strings.Cut(receiver, "[")
	return receiver + "." + function.Name.Name
}
