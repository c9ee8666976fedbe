package migrate

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// code is a module, loaded.
type code struct {
	root  string
	files []*source
	// errors are those of the compiler, and of the go command.
	errors []string
	// foreign are the modules that code of other modules imports packages of, by their path.
	foreign map[string]bool
	// folders are where the modules of the build list are, by their path.
	folders map[string]string
	// nested are folders below with modules of their own, and ignored are files that no build of the go command has.
	// Both have code to move.
	nested, ignored []string
}

// source is one Go file.
type source struct {
	path   string
	fset   *token.FileSet
	syntax *ast.File
	bytes  []byte
	// info and pkg are nil for a file that the build does not have, for its build constraints.
	info *types.Info
	pkg  *types.Package
}

const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule

// load type-checks the packages, together with their tests. Files whose build constraints ask for tags are loaded with
// these tags, and what the build still leaves out is only parsed.
func load(ctx context.Context, root string, o Options) (*code, error) {
	c := &code{root: root, foreign: map[string]bool{}, folders: map[string]string{}}
	seen := map[string]*source{}
	folders, err := c.build(ctx, o, o.Tags, seen)
	if err != nil {
		return nil, err
	}
	if err := c.walk(o, folders); err != nil {
		return nil, err
	}
	left, err := c.leftOut(folders, seen)
	if err != nil {
		return nil, err
	}
	for _, more := range tagSets(left) {
		if _, err := c.build(ctx, o, slices.Concat(o.Tags, more), seen); err != nil {
			return nil, err
		}
	}
	for _, s := range left {
		if seen[s.path] == nil {
			seen[s.path] = s
		}
	}
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		c.files = append(c.files, seen[path])
	}
	slices.Sort(c.errors)
	c.errors = slices.Compact(c.errors)
	return c, c.findModules(ctx, o)
}

// build loads what the tags let the go command build, and returns the folders of the packages.
func (c *code) build(
	ctx context.Context, o Options, tags []string, seen map[string]*source,
) (map[string]bool, error) {
	config := &packages.Config{
		Context: ctx, Dir: o.Folder, Mode: loadMode, Tests: true, BuildFlags: o.buildFlags,
	}
	if len(tags) > 0 {
		config.BuildFlags = slices.Concat(o.buildFlags, []string{"-tags=" + strings.Join(tags, ",")})
	}
	loaded, err := packages.Load(config, patterns(o)...)
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for _, pkg := range loaded {
		if pkg.Module != nil && filepath.Clean(pkg.Module.Dir) != c.root {
			return nil, fmt.Errorf("%s is not in the module at %s: give packages of one module", pkg.PkgPath, c.root)
		}
		for _, problem := range pkg.Errors {
			// A file may be broken under the tags of another one.
			if file, _, _ := strings.Cut(problem.Pos, ":"); len(tags) == len(o.Tags) || seen[file] == nil {
				c.errors = append(c.errors, problem.Error())
			}
		}
		for _, file := range slices.Concat(pkg.GoFiles, pkg.IgnoredFiles) {
			if strings.HasPrefix(file, c.root+string(filepath.Separator)) {
				folders[filepath.Dir(file)] = true
			}
		}
		if err := c.addPackage(pkg, seen); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

func patterns(o Options) []string {
	if len(o.Patterns) == 0 {
		return []string{"./..."}
	}
	return o.Patterns
}

func (c *code) addPackage(pkg *packages.Package, seen map[string]*source) error {
	for _, syntax := range pkg.Syntax {
		path := pkg.Fset.File(syntax.FileStart).Name()
		// What cgo and the tests of go make is not in the module.
		if seen[path] != nil || !strings.HasPrefix(path, c.root+string(filepath.Separator)) {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen[path] = &source{
			path: path, fset: pkg.Fset, syntax: syntax, bytes: content, info: pkg.TypesInfo, pkg: pkg.Types,
		}
	}
	return nil
}

// walk adds the folders below the patterns that end in "...", since the go command has no package for a folder all of
// whose files are left out by constraints. It notes modules below, and files that are no part of a build.
func (c *code) walk(o Options, folders map[string]bool) error {
	for _, pattern := range patterns(o) {
		start, all := strings.CutSuffix(pattern, "...")
		if !all || !(strings.HasPrefix(start, ".") || filepath.IsAbs(start)) {
			continue
		}
		if !filepath.IsAbs(start) {
			start = filepath.Join(o.Folder, start)
		}
		err := filepath.WalkDir(filepath.Clean(start), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			name := entry.Name()
			switch {
			case path != c.root && exists(filepath.Join(path, "go.mod")):
				if c.usesMoved(path) {
					c.nested = append(c.nested, path)
				}
				return filepath.SkipDir
			case path != start && (name == "vendor" || strings.HasPrefix(name, ".")):
				return filepath.SkipDir
			case path != start && (name == "testdata" || strings.HasPrefix(name, "_")):
				if c.usesMoved(path) {
					c.ignored = append(c.ignored, path)
				}
				return filepath.SkipDir
			}
			folders[path] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leftOut parses the files of the folders that have not been loaded, and have something to move.
func (c *code) leftOut(folders map[string]bool, seen map[string]*source) ([]*source, error) {
	var left []*source
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if seen[path] != nil || !importsMoved(path) {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			fset := token.NewFileSet()
			syntax, err := parser.ParseFile(fset, path, content, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				c.errors = append(c.errors, err.Error())
				continue
			}
			left = append(left, &source{path: path, fset: fset, syntax: syntax, bytes: content})
		}
	}
	return left, nil
}

// tagSets returns what the constraints of the files ask for: the tags of each file that has some, each set once.
func tagSets(left []*source) [][]string {
	sets := map[string][]string{}
	for _, s := range left {
		found := map[string]bool{}
		for _, group := range s.syntax.Comments {
			if group.Pos() > s.syntax.Package {
				break
			}
			for _, comment := range group.List {
				if expression, err := constraint.Parse(comment.Text); err == nil {
					collectTags(expression, found)
				}
			}
		}
		if tags := slices.Sorted(maps.Keys(found)); len(tags) > 0 {
			sets[strings.Join(tags, ",")] = tags
		}
	}
	return slices.SortedFunc(maps.Values(sets), slices.Compare)
}

// collectTags adds the tags that are wanted, and not those that must not be set.
func collectTags(expression constraint.Expr, found map[string]bool) {
	switch e := expression.(type) {
	case *constraint.AndExpr:
		collectTags(e.X, found)
		collectTags(e.Y, found)
	case *constraint.OrExpr:
		collectTags(e.X, found)
		collectTags(e.Y, found)
	case *constraint.TagExpr:
		// A file for another system cannot be built here, and "ignore" is never meant to be set.
		if !platforms[e.Tag] && e.Tag != "ignore" {
			found[e.Tag] = true
		}
	}
}

// platforms are tags that the go command sets itself.
var platforms = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq("aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd " +
		"plan9 solaris wasip1 windows unix 386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le " +
		"riscv64 s390x wasm cgo gc gccgo") {
		names[name] = true
	}
	return names
}()

// findModules finds where modules are, and what other modules than this one import.
func (c *code) findModules(ctx context.Context, o Options) error {
	config := &packages.Config{
		Context: ctx, Dir: o.Folder, Tests: true, BuildFlags: o.buildFlags,
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
	}
	loaded, err := packages.Load(config, c.root+"/...")
	if err != nil {
		return err
	}
	packages.Visit(loaded, nil, func(pkg *packages.Package) {
		if pkg.Module == nil || pkg.Module.Main {
			return
		}
		c.folders[pkg.Module.Path] = pkg.Module.Dir
		for _, imported := range pkg.Imports {
			if m := imported.Module; m != nil && m.Path != pkg.Module.Path {
				c.foreign[m.Path] = true
			}
		}
	})
	return nil
}

// usesMoved reports whether a Go file of the folder or below has something to move.
func (c *code) usesMoved(folder string) bool {
	found := errors.New("found")
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".go" && importsMoved(path) {
			return found
		}
		return nil
	})
	return errors.Is(err, found)
}

// importsMoved reports whether a file imports a package that moves. A file that cannot be read does not.
func importsMoved(path string) bool {
	syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	return err == nil && slices.ContainsFunc(syntax.Imports, func(spec *ast.ImportSpec) bool {
		_, ok := originOf(importPath(spec))
		return ok
	})
}

func importPath(spec *ast.ImportSpec) string {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
