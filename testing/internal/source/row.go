package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Row is a row of a table: a composite literal with the fields of a test case.
type Row struct {
	file    *File
	literal *ast.CompositeLit
	// start is the start of the row, its key included.
	start token.Pos
}

var (
	errNoRow    = errors.New("no row has that name as a constant")
	errManyRows = errors.New("several rows have that name")
)

// Find returns the row with a name. Places are where its table was run, from the innermost call to the outermost. The
// row is looked for in the functions around them, then outside of functions. Fields has the names of the fields that a
// row may have.
func Find(name string, fields []string, places []Place) (*Row, error) {
	found := errNoRow
	for _, whole := range []bool{false, true} {
		for _, place := range places {
			f, err := Read(place.File)
			if err != nil {
				found = errors.Join(found, err)
				continue
			}
			rows := f.rows(name, fields)
			around := f.around(place.Line)
			rows = slices.DeleteFunc(rows, func(r *Row) bool {
				return f.around(f.set.Position(r.start).Line) != around && (!whole || r.inFunction())
			})
			if len(rows) > 1 {
				rows = slices.DeleteFunc(rows, func(r *Row) bool { return !r.sharesStatement(around, place.Line) })
				found = errManyRows
			}
			if len(rows) == 1 {
				return rows[0], nil
			}
		}
	}
	return nil, fmt.Errorf("%w: %q", found, name)
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// rows returns the rows with a name.
func (f *File) rows(name string, fields []string) []*Row {
	var rows []*Row
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			literal := compositeOf(n.Value)
			if text, ok := constant(n.Key); ok && text == name && isRow(literal, fields) {
				rows = append(rows, &Row{file: f, literal: literal, start: n.Pos()})
			}
		case *ast.CompositeLit:
			if !isRow(n, fields) {
				return true
			}
			if value := fieldOf(n, "Name"); value != nil {
				if text, ok := constant(value.Value); ok && text == name {
					rows = append(rows, &Row{file: f, literal: n, start: n.Pos()})
				}
			}
		}
		return true
	})
	return rows
}

// isRow reports whether a literal is of a struct with the fields.
func isRow(literal *ast.CompositeLit, fields []string) bool {
	if literal == nil {
		return false
	}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		if key, ok := pair.Key.(*ast.Ident); !ok || !slices.Contains(fields, key.Name) {
			return false
		}
	}
	return true
}

// constant returns the value of a string constant that is written out.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return constant(e.X)
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, also := constant(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// compositeOf returns a composite literal, of which e may be the address; nil if e is something else.
func compositeOf(e ast.Expr) *ast.CompositeLit {
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = address.X
	}
	literal, _ := e.(*ast.CompositeLit)
	return literal
}

// fieldOf returns the field of a struct literal, or the entry of a map literal; nil if it has none of that name.
func fieldOf(literal *ast.CompositeLit, name string) *ast.KeyValueExpr {
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
			return pair
		}
		if text, ok := constant(pair.Key); ok && text == name {
			return pair
		}
	}
	return nil
}

// around returns the declaration of the function around a line, nil if there is none.
func (f *File) around(line int) *ast.FuncDecl {
	for _, decl := range f.syntax.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && f.set.Position(function.Pos()).Line <= line && line <= f.set.Position(function.End()).Line {
			return function
		}
	}
	return nil
}

func (r *Row) inFunction() bool { return r.file.around(r.file.set.Position(r.start).Line) != nil }

// sharesStatement reports whether a row is in the same statement of a function as a line.
func (r *Row) sharesStatement(function *ast.FuncDecl, line int) bool {
	if function == nil || function.Body == nil {
		return false
	}
	for _, statement := range function.Body.List {
		if statement.Pos() <= r.start && r.start < statement.End() {
			first, last := r.file.set.Position(statement.Pos()), r.file.set.Position(statement.End())
			return first.Line <= line && line <= last.Line
		}
	}
	return false
}

// Line returns the row's place, as name.go:line.
func (r *Row) Line() string {
	at := r.file.set.Position(r.start)
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// Text returns the text of the row.
func (r *Row) Text() string { return r.file.text(r.literal) }

// File returns the file of the row.
func (r *Row) File() *File { return r.file }

// In returns the value of a nested literal as a row: an entry of a map by its key, or an element of a list by its Name.
func (r *Row) In(field, name string) (*Row, error) {
	if pair := fieldOf(r.literal, field); pair != nil {
		if nested := compositeOf(pair.Value); nested != nil {
			if entry := fieldOf(nested, name); entry != nil {
				if literal := compositeOf(entry.Value); literal != nil {
					return &Row{file: r.file, literal: literal, start: entry.Pos()}, nil
				}
			}
			for _, element := range nested.Elts {
				literal := compositeOf(element)
				if literal == nil {
					continue
				}
				if value := fieldOf(literal, "Name"); value != nil {
					if text, ok := constant(value.Value); ok && text == name {
						return &Row{file: r.file, literal: literal, start: literal.Pos()}, nil
					}
				}
			}
		}
	}
	return nil, fmt.Errorf("%w: %q in %s", errNoRow, name, field)
}

// Elements returns the texts of the elements of a field that is a list, and of its type; ok is false if the field is
// not written as a list.
func (r *Row) Elements(field string) (typ string, elements []string, ok bool) {
	pair := fieldOf(r.literal, field)
	if pair == nil {
		return "", nil, false
	}
	list, isLiteral := pair.Value.(*ast.CompositeLit)
	if !isLiteral || list.Type == nil {
		return "", nil, false
	}
	for _, element := range list.Elts {
		if _, keyed := element.(*ast.KeyValueExpr); keyed {
			return "", nil, false
		}
		elements = append(elements, r.file.text(element))
	}
	return r.file.text(list.Type), elements, true
}

// Field returns the text of the value of a field; ok is false if the row does not write it.
func (r *Row) Field(name string) (text string, ok bool) {
	pair := fieldOf(r.literal, name)
	if pair == nil {
		return "", false
	}
	return r.file.text(pair.Value), true
}

// Set sets fields to expressions; an empty expression removes a field. Imports are the import paths that they need, by
// import name. The file is written.
func (r *Row) Set(fields map[string]string, imports map[string]string) error {
	f := r.file
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, importPath := range imports {
		f.imports[name] = importPath
	}
	for name, expression := range fields {
		switch pair := fieldOf(r.literal, name); {
		case pair != nil && expression == "":
			f.remove(pair)
		case pair != nil:
			f.edit(pair.Value.Pos(), pair.Value.End(), expression)
		case expression != "":
			r.add(name, expression)
		}
	}
	return f.write()
}

// add adds a field at the end of the row, after those that were added before.
func (r *Row) add(name, expression string) {
	added := r.file.added[r.literal]
	if added == nil {
		added = map[string]string{}
		r.file.added[r.literal] = added
	}
	added[name] = expression
	text := r.separator()
	for _, name := range slices.Sorted(maps.Keys(added)) {
		text += name + ": " + added[name] + ",\n"
	}
	r.file.edit(r.literal.Rbrace, r.literal.Rbrace, text)
}

// separator returns what goes between the fields of a row and another one.
func (r *Row) separator() string {
	if len(r.literal.Elts) == 0 {
		return "\n"
	}
	last := r.literal.Elts[len(r.literal.Elts)-1]
	rest := string(r.file.content[r.file.offset(last.End()):r.file.offset(r.literal.Rbrace)])
	switch trimmed := strings.TrimSpace(rest); {
	case strings.HasPrefix(trimmed, ",") && strings.Contains(rest, "\n"):
		return ""
	case strings.HasPrefix(trimmed, ","):
		return "\n"
	default:
		return ",\n"
	}
}

// remove removes a field with the comma behind it.
func (f *File) remove(pair *ast.KeyValueExpr) {
	from, to := f.offset(pair.Pos()), f.offset(pair.End())
	for to < len(f.content) && strings.ContainsRune(", \t", rune(f.content[to])) {
		to++
	}
	if to < len(f.content) && f.content[to] == '\n' {
		for from > 0 && strings.ContainsRune(" \t", rune(f.content[from-1])) {
			from--
		}
		if from > 0 && f.content[from-1] == '\n' {
			to++
		}
	}
	f.edits[span{from, to}] = ""
}
