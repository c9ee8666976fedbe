// Package source finds the rows of tables of test cases in Go files, and changes their fields there.
package source

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// File is a Go file of a test, as it was when it was first read. So positions are those of the running binary, even
// after changes.
type File struct {
	path    string
	content []byte
	set     *token.FileSet
	syntax  *ast.File
	// declaredElsewhere returns what the other files of the package declare.
	declaredElsewhere func() map[string]bool

	// mu guards the fields below.
	mu    sync.Mutex
	edits map[span]string
	// added are the fields that a row gets in addition.
	added   map[*ast.CompositeLit]map[string]string
	imports map[string]string
}

// span is a range of bytes in the original content.
type span struct{ from, to int }

// startedIn is the folder of the package that is tested: go test starts the tests there.
var startedIn, _ = os.Getwd()

// PathOf returns the path of a file that the running binary names. With -trimpath, that is below the import path of its
// package.
func PathOf(file string) string {
	if file == "" || filepath.IsAbs(file) || startedIn == "" {
		return file
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return file
	}
	tested := strings.TrimSuffix(info.Path, ".test")
	relative, err := filepath.Rel(filepath.FromSlash(tested), filepath.FromSlash(file))
	if err != nil {
		return file
	}
	return filepath.Join(startedIn, relative)
}

var files sync.Map

// Read returns the file with that path. It is read once in a process.
func Read(path string) (*File, error) {
	if file, ok := files.Load(path); ok {
		return file.(*File), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{
		path: path, content: content, set: token.NewFileSet(), edits: map[span]string{},
		added: map[*ast.CompositeLit]map[string]string{}, imports: map[string]string{},
	}
	if f.syntax, err = parser.ParseFile(f.set, path, content, parser.ParseComments); err != nil {
		return nil, err
	}
	f.declaredElsewhere = sync.OnceValue(func() map[string]bool { return siblingsOf(path, f.syntax.Name.Name) })
	file, _ := files.LoadOrStore(path, f)
	return file.(*File), nil
}

// contents are files that were looked into.
var contents sync.Map

// Has reports whether a file had a text when it was looked into for the first time. One that cannot be read has none.
func Has(path, text string) bool {
	content, ok := contents.Load(path)
	if !ok {
		read, _ := os.ReadFile(path)
		content, _ = contents.LoadOrStore(path, string(read))
	}
	return strings.Contains(content.(string), text)
}

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Imports returns the import names by import path. A name is empty if the file gives none.
func (f *File) Imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		names[path] = ""
		if spec.Name != nil {
			names[path] = spec.Name.Name
		}
	}
	return names
}

// edit remembers that a range is replaced by a text. A later edit of the same range takes the place of the former.
func (f *File) edit(from, to token.Pos, text string) {
	f.edits[span{f.offset(from), f.offset(to)}] = text
}

func (f *File) offset(p token.Pos) int { return f.set.Position(p).Offset }

// text returns the original text of a node.
func (f *File) text(n ast.Node) string { return string(f.content[f.offset(n.Pos()):f.offset(n.End())]) }

// write writes the file with all edits.
func (f *File) write() error {
	changed := f.edited(f.content)
	changed, err := completeImports(f.syntax, changed, f.imports)
	if err != nil {
		return fmt.Errorf("%s cannot be changed: %w", f.path, err)
	}
	formatted, err := format.Source(changed)
	if err != nil {
		return fmt.Errorf("%s cannot be formatted: %w", f.path, err)
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	return os.WriteFile(f.path, formatted, info.Mode().Perm())
}

// edited returns the content with the edits.
func (f *File) edited(content []byte) []byte {
	spans := make([]span, 0, len(f.edits))
	for s := range f.edits {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var changed []byte
	done := 0
	for _, s := range spans {
		if s.from < done {
			// An edit of a part of what another edit replaces.
			continue
		}
		changed = append(changed, content[done:s.from]...)
		changed = append(changed, f.edits[s]...)
		done = s.to
	}
	return append(changed, content[done:]...)
}
