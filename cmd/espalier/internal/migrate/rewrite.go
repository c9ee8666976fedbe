package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// rewriting changes one file.
type rewriting struct {
	*source
	symbols map[*origin]*symbols
	edits   []edit
	// qualifiers are the names of packages of Espalier in the file afterwards, by their import path.
	qualifiers map[string]string
	stays      []remaining
}

// remaining is a symbol that stays as it is.
type remaining struct {
	at           token.Pos
	origin       *origin
	symbol, what string
}

// rewrite returns the file with the new imports and names, and what of it has to be changed by hand.
func (s *source) rewrite(all map[*origin]*symbols) ([]byte, []remaining, error) {
	r := &rewriting{source: s, symbols: all, qualifiers: map[string]string{}}
	if s.info == nil {
		if err := r.importsOnly(); err != nil {
			return nil, nil, err
		}
	} else {
		r.move()
	}
	r.docLinks()
	if len(r.edits) == 0 {
		return s.bytes, r.stays, nil
	}
	out := r.apply()
	if _, err := parser.ParseFile(token.NewFileSet(), s.path, out, parser.SkipObjectResolution); err != nil {
		return nil, nil, fmt.Errorf("the changed file has no valid syntax, please report this: %w", err)
	}
	// The order of imports changes with their paths. A file that is not formatted stays so.
	if formatted, err := format.Source(s.bytes); err == nil && bytes.Equal(formatted, s.bytes) {
		if out, err = format.Source(out); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return out, r.stays, nil
}

// importsOnly changes the imports of a file without types.
func (r *rewriting) importsOnly() error {
	for _, spec := range r.syntax.Imports {
		of, ok := originOf(importPath(spec))
		if !ok {
			continue
		}
		target := of.target(of.relative(importPath(spec)))
		if of.typed && r.usesC() || !of.typed && target == "" {
			r.stay(spec.Pos(), of, of.relative(importPath(spec)), "the import of "+importPath(spec))
			continue
		}
		if of.typed {
			return fmt.Errorf("%s imports %s, and no build has it here: give its build tags by --tags, "+
				"or run the command on the system that it is for", r.path, importPath(spec))
		}
		r.replace(spec.Path, strconv.Quote(target))
	}
	return nil
}

// usesC reports whether the file is one for cgo, which no build has as it is.
func (r *rewriting) usesC() bool {
	return slices.ContainsFunc(r.syntax.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == "C" })
}

// use is a name of an origin before a dot, or alone after an import of its names.
type use struct {
	qualifier *ast.Ident
	name      *ast.Ident
	pkg       *types.PkgName
}

// move changes the imports, and the names of packages, of what they have, and of fields.
func (r *rewriting) move() {
	uses := r.uses()
	for _, spec := range r.syntax.Imports {
		path := importPath(spec)
		named := spec.Name != nil && (spec.Name.Name == "_" || spec.Name.Name == ".")
		if _, ok := originOf(path); !ok && !named && packageOf(r.info, spec) != nil {
			r.qualifiers[path] = packageOf(r.info, spec).Name()
		}
	}
	for _, spec := range r.syntax.Imports {
		if of, ok := originOf(importPath(spec)); ok {
			r.moveImport(spec, of, uses[packageOf(r.info, spec)])
		}
	}
	r.members()
}

// packageOf is the package that an import declares, or nil.
func packageOf(info *types.Info, spec *ast.ImportSpec) *types.PkgName {
	if spec.Name != nil {
		name, _ := info.Defs[spec.Name].(*types.PkgName)
		return name
	}
	name, _ := info.Implicits[spec].(*types.PkgName)
	return name
}

// uses returns the names that stand after the name of a package, by that.
func (r *rewriting) uses() map[*types.PkgName][]use {
	found := map[*types.PkgName][]use{}
	ast.Inspect(r.syntax, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if qualifier, ok := selector.X.(*ast.Ident); ok {
			if pkg, ok := r.info.Uses[qualifier].(*types.PkgName); ok {
				found[pkg] = append(found[pkg], use{qualifier, selector.Sel, pkg})
			}
		}
		return true
	})
	return found
}

// moveImport changes an import, and the names that the file uses of it.
func (r *rewriting) moveImport(spec *ast.ImportSpec, of *origin, uses []use) {
	path := importPath(spec)
	target := of.target(of.relative(path))
	if len(uses) == 0 { // for its effects alone, or all its names without the package
		if target != "" && !of.typed {
			r.replace(spec.Path, strconv.Quote(target))
		} else {
			r.stay(spec.Pos(), of, of.relative(path), "the import of "+path)
		}
		return
	}
	moved := map[string][]use{}
	var order []string
	stays := false
	for _, u := range uses {
		now, ok := of.find(path, u.name.Name)
		if !ok {
			stays = true
			r.stay(u.qualifier.Pos(), of, of.relative(path)+"."+u.name.Name, "")
			continue
		}
		if moved[now.pkg] == nil {
			order = append(order, now.pkg)
		}
		moved[now.pkg] = append(moved[now.pkg], u)
		if now.name != u.name.Name {
			r.replace(u.name, now.name)
		}
	}
	replaced := stays
	for _, pkg := range order {
		name := r.qualifiers[pkg]
		if name == "" {
			name = r.localName(pkg, spec, uses[0].pkg, stays)
			r.qualifiers[pkg] = name
			if replaced {
				r.addImport(spec, importOf(name, pkg))
			} else {
				text := importOf(name, pkg)
				if spec.Name != nil {
					text = name + " " + strconv.Quote(pkg)
				}
				r.replace(spec, text)
				replaced = true
			}
		}
		for _, u := range moved[pkg] {
			if u.qualifier.Name != name {
				r.replace(u.qualifier, name)
			}
		}
	}
	if !replaced {
		r.dropImport(spec) // another import has all that it had
	}
}

// importOf is the text of an import.
func importOf(name, pkg string) string {
	if name == packageName(pkg) {
		return strconv.Quote(pkg)
	}
	return name + " " + strconv.Quote(pkg)
}

// localName chooses the name of a package in the file: the one that the import has given it, the name of the package,
// or the first that nothing else in the file has.
func (r *rewriting) localName(pkg string, spec *ast.ImportSpec, before *types.PkgName, stays bool) string {
	of, _ := originOf(importPath(spec))
	if spec.Name != nil && !stays && !of.partial {
		return spec.Name.Name
	}
	candidates := []string{packageName(pkg)}
	if !stays && !of.partial {
		candidates = append(candidates, before.Name())
	}
	candidates = append(candidates, "espalier"+packageName(pkg))
	for _, name := range candidates {
		if !r.taken(name, before, stays) {
			return name
		}
	}
	for i := 2; ; i++ {
		if name := candidates[len(candidates)-1] + strconv.Itoa(i); !r.taken(name, before, stays) {
			return name
		}
	}
}

// taken reports whether the file, or its package, has another use for a name than the import that is moved.
func (r *rewriting) taken(name string, moving *types.PkgName, stays bool) bool {
	for _, other := range r.qualifiers {
		if other == name {
			return true
		}
	}
	if r.pkg.Scope().Lookup(name) != nil {
		return true
	}
	for _, spec := range r.syntax.Imports {
		other := packageOf(r.info, spec)
		if other == nil || other.Name() != name || other == moving && !stays {
			continue
		}
		// An import of an origin of which nothing stays gives its name away.
		if of, ok := originOf(importPath(spec)); ok && r.movesWhole(spec, of) {
			continue
		}
		return true
	}
	// What shadows the name of the import where that is not used may go on to do so.
	if name == moving.Name() && !stays && r.hasOneOrigin() {
		return false
	}
	return slices.ContainsFunc(r.declared(), func(ident *ast.Ident) bool { return ident.Name == name })
}

// hasOneOrigin reports whether one import of the file moves, and no other one.
func (r *rewriting) hasOneOrigin() bool {
	found := 0
	for _, spec := range r.syntax.Imports {
		if _, ok := originOf(importPath(spec)); ok {
			found++
		}
	}
	return found == 1
}

func (r *rewriting) movesWhole(spec *ast.ImportSpec, of *origin) bool {
	for _, u := range r.uses()[packageOf(r.info, spec)] {
		if now, ok := of.find(importPath(spec), u.name.Name); !ok || packageName(now.pkg) == u.qualifier.Name {
			return false
		}
	}
	return spec.Name == nil
}

// declared are the names that the file declares for something else than packages, fields and methods.
func (r *rewriting) declared() []*ast.Ident {
	var found []*ast.Ident
	for ident, object := range r.info.Defs {
		if ident.Pos() < r.syntax.FileStart || ident.Pos() > r.syntax.FileEnd {
			continue
		}
		switch o := object.(type) {
		case nil, *types.PkgName:
			continue
		case *types.Var:
			if o.IsField() {
				continue
			}
		case *types.Func:
			if o.Signature().Recv() != nil {
				continue
			}
		}
		found = append(found, ident)
	}
	return found
}

// addImport puts an import before another one, in its group.
func (r *rewriting) addImport(spec *ast.ImportSpec, text string) {
	declaration := r.declarationOf(spec)
	at, text := r.offset(spec.Pos()), text+"; "
	if start, _, ok := r.ownLine(spec); ok {
		at, text = start, "\t"+strings.TrimSuffix(text, "; ")+"\n"
	} else if !declaration.Lparen.IsValid() {
		at, text = r.offset(declaration.Pos()), "import "+text
		if _, _, ok := r.ownLine(declaration); ok {
			text = strings.TrimSuffix(text, "; ") + "\n"
		}
	}
	r.edits = append(r.edits, edit{at, at, text})
}

// dropImport removes an import, and its line.
func (r *rewriting) dropImport(spec *ast.ImportSpec) {
	var node ast.Node = spec
	if declaration := r.declarationOf(spec); !declaration.Lparen.IsValid() {
		node = declaration
	}
	if start, end, ok := r.ownLine(node); ok {
		r.edits = append(r.edits, edit{start, end, ""})
		return
	}
	r.replace(node, "")
}

func (r *rewriting) declarationOf(spec *ast.ImportSpec) *ast.GenDecl {
	for _, declaration := range r.syntax.Decls {
		if d, ok := declaration.(*ast.GenDecl); ok && d.Pos() <= spec.Pos() && spec.End() <= d.End() {
			return d
		}
	}
	return nil // a spec is in a declaration
}

// ownLine returns the line of a node that has it for itself.
func (r *rewriting) ownLine(node ast.Node) (start, end int, ok bool) {
	from, to := r.offset(node.Pos()), r.offset(node.End())
	start = bytes.LastIndexByte(r.bytes[:from], '\n') + 1
	length := bytes.IndexByte(r.bytes[to:], '\n') + 1
	if length == 0 {
		return 0, 0, false
	}
	end = to + length
	blank := len(bytes.TrimSpace(r.bytes[start:from]))+len(bytes.TrimSpace(r.bytes[to:end])) == 0
	return start, end, blank
}

// members changes the names of fields and methods, which stand without a package.
func (r *rewriting) members() {
	for ident, object := range r.info.Uses {
		if ident.Pos() < r.syntax.FileStart || ident.Pos() > r.syntax.FileEnd || object.Pkg() == nil {
			continue
		}
		of, ok := originOf(object.Pkg().Path())
		if !ok {
			continue
		}
		name, ok := r.symbols[of].find(object)
		if !ok || object.Parent() == object.Pkg().Scope() {
			continue
		}
		if now, ok := of.names[name]; ok && now.name != ident.Name {
			r.replace(ident, now.name)
		} else if what := of.byHand[name]; what != "" {
			r.stay(ident.Pos(), of, name, what)
		}
	}
}

func (r *rewriting) stay(at token.Pos, of *origin, symbol, what string) {
	if what == "" {
		what = of.byHand[symbol]
	}
	r.stays = append(r.stays, remaining{at, of, symbol, what})
}

// docLink is a link of a doc comment to a package, or to what it has.
var docLink = regexp.MustCompile(`\[\*?((?:[\w.-]+/)+[\w-]+)(\.[A-Z]\w*)*\]`)

// docLinks changes the import paths in links of comments.
func (r *rewriting) docLinks() {
	for _, group := range r.syntax.Comments {
		for _, comment := range group.List {
			// The text of the comment lacks carriage returns.
			start := r.offset(comment.Pos())
			text := string(r.bytes[start:r.offset(comment.End())])
			for _, at := range docLink.FindAllStringSubmatchIndex(text, -1) {
				path := text[at[2]:at[3]]
				of, ok := originOf(path)
				if !ok || of.typed {
					continue
				}
				if target := of.target(of.relative(path)); target != "" {
					r.edits = append(r.edits, edit{start + at[2], start + at[3], target})
				}
			}
		}
	}
}

func (r *rewriting) offset(at token.Pos) int { return r.fset.File(at).Offset(at) }

func (r *rewriting) replace(node ast.Node, text string) {
	r.edits = append(r.edits, edit{r.offset(node.Pos()), r.offset(node.End()), text})
}

// apply returns the file with all edits.
func (r *rewriting) apply() []byte {
	// What is put before something that changes stands before it.
	slices.SortStableFunc(r.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	r.edits = slices.Compact(r.edits)
	var out []byte
	at := 0
	for _, e := range r.edits {
		out = append(out, r.bytes[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, r.bytes[at:]...)
}
