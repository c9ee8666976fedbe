package source

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// completeImports adds imports, import paths by name, to a changed file, and drops those that are no longer used.
func completeImports(before *ast.File, content []byte, wanted map[string]string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", content, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	was, used := qualifiers(before), qualifiers(file)
	type change struct {
		from, to int
		text     string
	}
	var changes []change
	for _, spec := range file.Imports {
		if name := nameOf(spec); was[name] && !used[name] {
			from := len(bytes.TrimRight(content[:offset(spec.Pos())], " \t"))
			changes = append(changes, change{max(0, from-1), offset(spec.End()), ""})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !used[name] {
			continue
		}
		at, line := placeOf(file, wanted[name]), specOf(name, wanted[name])
		switch {
		case at == nil:
			changes = append(changes, change{offset(file.Name.End()), offset(file.Name.End()), "\n\nimport " + line})
		case grouped(file, at):
			changes = append(changes, change{offset(at.End()), offset(at.End()), "\n" + line})
		default:
			changes = append(changes, change{offset(at.End()), offset(at.End()), "\nimport " + line})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return b.from - a.from })
	for _, c := range changes {
		content = slices.Concat(content[:c.from], []byte(c.text), content[c.to:])
	}
	return bytes.ReplaceAll(content, []byte("import ()\n"), nil), nil
}

// qualifiers returns the names before the dots of a file.
func qualifiers(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok {
				names[pkg.Name] = true
			}
		}
		return true
	})
	return names
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// nameOf returns the name that a file has for an import, guessed from the path if the import has no name.
func nameOf(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	importPath, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	name := path.Base(importPath)
	if majorVersion.MatchString(name) && strings.Contains(strings.Split(importPath, "/")[0], "github.com") {
		name = path.Base(path.Dir(importPath))
	}
	return name
}

func specOf(name, importPath string) string {
	if path.Base(importPath) == name {
		return strconv.Quote(importPath)
	}
	return fmt.Sprintf("%s %q", name, importPath)
}

// placeOf returns the import after which another one goes, nil if there is none. The import is the last that has most
// of the path in common.
func placeOf(file *ast.File, importPath string) *ast.ImportSpec {
	var best *ast.ImportSpec
	most := -1
	for _, spec := range file.Imports {
		other, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if n := likeness(other, importPath); n >= most {
			best, most = spec, n
		}
	}
	return best
}

// likeness returns the number of elements that two import paths share at their start. Paths of the standard library,
// and paths of other modules, have something in common.
func likeness(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	if strings.Contains(as[0], ".") == strings.Contains(bs[0], ".") {
		n++
	}
	return n
}

// grouped reports whether an import is in parentheses.
func grouped(file *ast.File, spec *ast.ImportSpec) bool {
	for _, decl := range file.Decls {
		if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Pos() <= spec.Pos() && spec.End() <= g.End() {
			return g.Lparen.IsValid()
		}
	}
	return false
}
