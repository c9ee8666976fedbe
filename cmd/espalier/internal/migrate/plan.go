package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Plan is what there is to do in a module, and what has been found there.
type Plan struct {
	// Root is the folder of the module.
	Root string `json:"root"`
	// Files are to be changed.
	Files []Change `json:"files"`
	// Remaining are names that have to be changed by hand.
	Remaining []Remaining `json:"byHand"`
	// Findings are the places whose behavior differs.
	Findings []Finding `json:"findings"`
	// Unseen are the differences that code does not show. There are none without a finding of that origin.
	Unseen []Unseen `json:"unseen"`
	// Left are folders and files that were left alone although they have something to move, and why.
	Left []string `json:"left"`
	// Broken is what does not compile: before the change of a run that was forced, or after it.
	Broken []string `json:"broken"`

	skipTidy bool
	// imports are the modules that files import packages of afterwards.
	imports map[string]bool
}

// Change is a file to be changed.
type Change struct {
	// Path is relative to the module.
	Path          string `json:"path"`
	before, after []byte
}

// Remaining is a name that has to be changed by hand.
type Remaining struct {
	Position
	// Name is the name, with the path of its package.
	Name string `json:"name"`
	// Instead says what to use.
	Instead string `json:"instead"`
}

// Position is a place in a file of the module.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// addSources adds the Go files.
func (p *Plan) addSources(c *code, force bool) error {
	p.imports = map[string]bool{}
	for _, nested := range c.nested {
		p.Left = append(p.Left, p.relative(nested)+": a module of its own; run the command there")
	}
	for _, ignored := range c.ignored {
		p.Left = append(p.Left, p.relative(ignored)+": the go command builds nothing there")
	}
	var errs []error
	unreadable := 0
	for _, s := range c.files {
		if len(c.errors) > 0 && !s.hasSyntax() {
			unreadable++
			_ = p.noteImports(s.bytes) // which may be broken, too
			p.Left = append(p.Left, p.relative(s.path)+": its syntax is not valid")
			continue
		}
		after, stays, err := s.rewrite(s.allSymbols())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range stays {
			p.Remaining = append(p.Remaining, Remaining{
				Position: p.position(s, r.at), Name: r.origin.module + "/" + r.symbol, Instead: r.what,
			})
		}
		if !bytes.Equal(after, s.bytes) {
			p.Files = append(p.Files, Change{Path: p.relative(s.path), before: s.bytes, after: after})
		}
		if err := p.noteImports(after); err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortStableFunc(p.Remaining, func(a, b Remaining) int { return a.compare(b.Position) })
	if len(c.errors) > 0 && len(p.Files)+len(p.Remaining)+unreadable > 0 {
		if !force {
			return fmt.Errorf("the code does not compile, so nothing is changed; mend this, or give --force:\n%s",
				strings.Join(firstOf(c.errors, 10), "\n"))
		}
		p.Broken = c.errors
	}
	return errors.Join(errs...)
}

// hasSyntax reports whether a file that has something to move can be changed at all.
func (s *source) hasSyntax() bool {
	_, err := parser.ParseFile(token.NewFileSet(), s.path, s.bytes, parser.SkipObjectResolution)
	return err == nil || !importsMoved(s.path)
}

func firstOf(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", len(lines)-most))
}

func (s *source) allSymbols() map[*origin]*symbols {
	all := map[*origin]*symbols{}
	if s.pkg != nil {
		for _, of := range origins {
			all[of] = newSymbols(of, s.pkg)
		}
	}
	return all
}

// noteImports notes which modules a file imports packages of.
func (p *Plan) noteImports(content []byte) error {
	syntax, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range syntax.Imports {
		path := importPath(spec)
		if of, ok := originOf(path); ok {
			p.imports[of.module] = true
		}
		if path == Module || strings.HasPrefix(path, Module+"/") {
			p.imports[moduleOf(path)] = true
		}
	}
	return nil
}

// noteOthers notes what the files of the module import that were not asked for.
func (p *Plan) noteOthers(c *code) error {
	asked := map[string]bool{}
	for _, s := range c.files {
		asked[s.path] = true
	}
	return filepath.WalkDir(p.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name := entry.Name()
			if path != p.Root && (name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") ||
				strings.HasPrefix(name, "_") || exists(filepath.Join(path, "go.mod"))) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || asked[path] || !importsMoved(path) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return p.noteImports(content)
	})
}

// needed are the modules of Espalier that the files import afterwards.
func (p *Plan) needed() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.imports)), func(module string) bool {
		return module != Module && !strings.HasPrefix(module, Module+"/")
	})
}

func (p *Plan) position(s *source, at token.Pos) Position {
	position := s.fset.PositionFor(at, false)
	return Position{File: p.relative(s.path), Line: position.Line, Column: position.Column}
}

func (p Position) compare(o Position) int {
	if p.File != o.File {
		return strings.Compare(p.File, o.File)
	}
	if p.Line != o.Line {
		return p.Line - o.Line
	}
	return p.Column - o.Column
}

func (p *Plan) relative(path string) string {
	if relative, err := filepath.Rel(p.Root, path); err == nil {
		return filepath.ToSlash(relative)
	}
	return path
}

// follow has positions follow the lines of files that were changed: imports come and go, and long lines are broken.
func (p *Plan) follow() {
	for _, file := range p.Files {
		lines := linesAfter(string(file.before), string(file.after))
		at := func(position *Position) {
			if position.File == file.Path && position.Line < len(lines) {
				position.Line = lines[position.Line]
			}
		}
		for i := range p.Findings {
			at(&p.Findings[i].Position)
		}
		for i := range p.Remaining {
			at(&p.Remaining[i].Position)
		}
	}
}

// linesAfter returns the numbers that lines have after a change, by the numbers that they had. Both begin with 1.
func linesAfter(before, after string) []int {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	lines := make([]int, len(a)+1)
	for _, part := range difflib.NewMatcher(a, b).GetOpCodes() {
		for i := part.I1; i < part.I2; i++ {
			// A line that is gone becomes the one that follows it.
			lines[i+1] = min(part.J1+i-part.I1, max(part.J1, part.J2-1)) + 1
		}
	}
	return lines
}

// Diff returns the changes as a unified diff.
func (p *Plan) Diff() (string, error) {
	out := &strings.Builder{}
	for _, file := range p.Files {
		err := difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
			A: difflib.SplitLines(string(file.before)), B: difflib.SplitLines(string(file.after)),
			FromFile: "a/" + file.Path, ToFile: "b/" + file.Path, Context: 3,
		})
		if err != nil {
			return "", fmt.Errorf("%s: %w", file.Path, err)
		}
	}
	return out.String(), nil
}
