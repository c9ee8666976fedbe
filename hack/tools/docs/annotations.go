package main

import (
	"go/ast"
	"go/doc/comment"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const annotationsTitle = "Annotations of the objects of a component"

// annotations are groups of constants that name annotations.
type annotations struct {
	from   *source
	groups []annotationGroup
}

type annotationGroup struct {
	doc         string
	annotations []annotation
}

// annotation is a constant.
type annotation struct {
	constant, name, doc string
}

// loadAnnotations finds the groups of constants that are called Annotation or Label and something, in the order of the
// source.
func loadAnnotations(root, folder string) (*annotations, error) {
	from, err := load(root, folder)
	if err != nil {
		return nil, err
	}
	a := &annotations{from: from}
	for _, value := range from.pkg.Consts {
		if value.Decl.Tok != token.CONST || !value.Decl.Lparen.IsValid() {
			continue
		}
		group := annotationGroup{doc: value.Doc}
		for _, spec := range value.Decl.Specs {
			if found, ok := from.annotationOf(root, spec); ok {
				group.annotations = append(group.annotations, found)
			}
		}
		if len(group.annotations) > 0 {
			a.groups = append(a.groups, group)
		}
	}
	return a, nil
}

func (s *source) annotationOf(root string, spec ast.Spec) (annotation, bool) {
	constant, ok := spec.(*ast.ValueSpec)
	if !ok || len(constant.Names) != 1 || len(constant.Values) != 1 {
		return annotation{}, false
	}
	name := constant.Names[0].Name
	if !strings.HasPrefix(name, "Annotation") && !strings.HasPrefix(name, "Label") {
		return annotation{}, false
	}
	value, ok := s.valueOf(root, constant.Values[0])
	return annotation{constant: name, name: value, doc: constant.Doc.Text()}, ok
}

// valueOf returns the value of a constant: a text, or a constant of another package of the module.
func (s *source) valueOf(root string, value ast.Expr) (text string, ok bool) {
	switch value := value.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(value.Value)
		return text, err == nil
	case *ast.SelectorExpr:
		for _, imported := range s.pkg.Imports {
			folder, ours := strings.CutPrefix(imported, modulePath+"/")
			if name, isName := value.X.(*ast.Ident); ours && isName && path.Base(imported) == name.Name {
				if from, err := load(root, folder); err == nil {
					return from.constant(root, value.Sel.Name)
				}
			}
		}
	}
	return "", false
}

// constant returns the value of the constant of that name.
func (s *source) constant(root, name string) (text string, ok bool) {
	for _, group := range s.pkg.Consts {
		for _, spec := range group.Decl.Specs {
			constant, ok := spec.(*ast.ValueSpec)
			if ok && len(constant.Names) == 1 && constant.Names[0].Name == name && len(constant.Values) == 1 {
				return s.valueOf(root, constant.Values[0])
			}
		}
	}
	return "", false
}

// missing returns what the doc comments leave out, a sentence each.
func (a *annotations) missing() []string {
	var missing []string
	if len(a.groups) == 0 {
		missing = append(missing, "package "+a.from.pkg.Name+" has no annotations")
	}
	for _, group := range a.groups {
		for _, annotation := range group.annotations {
			if annotation.doc == "" {
				missing = append(missing, annotation.constant+" has no doc comment")
			}
		}
	}
	return missing
}

// page describes all annotations. The first group comes with a table and a section for each annotation, the others with
// a list.
func (a *annotations) page(v *vocabulary) string {
	first := a.groups[0]
	parts := []string{
		mark + "# " + annotationsTitle,
		a.markdown(v, first.doc),
		"## All annotations",
		a.table(first.annotations),
	}
	for _, annotation := range first.annotations {
		text := a.markdown(v, annotation.text("The annotation "+annotation.name))
		text = valueInList.ReplaceAllString(text, "- `$1`:")
		parts = append(parts, "## "+annotation.name, text)
	}
	for _, group := range a.groups[1:] {
		parts = append(parts, "## Written by the component", a.markdown(v, group.doc), a.list(v, group.annotations))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// valueInList matches a value at the beginning of an item of a list.
var valueInList = regexp.MustCompile(`(?m)^- ([a-zA-Z=;-]+):`)

func (a *annotations) markdown(v *vocabulary, text string) string {
	return v.markdown(a.from, text, "nodes/", textWidth)
}

// text is the doc comment, in which the constant is called by another name.
func (a annotation) text(name string) string {
	return strings.Replace(a.doc, a.constant, name, 1)
}

// table has a line for each annotation: its name, its values and its default.
func (a *annotations) table(annotations []annotation) string {
	lines := []string{"| Annotation | Values | Default |", "|---|---|---|"}
	for _, annotation := range annotations {
		values, otherwise := a.summary(annotation.doc)
		link := "[`" + annotation.name + "`](#" + annotation.name + ")"
		lines = append(lines, "| "+link+" | "+values+" | "+otherwise+" |")
	}
	return strings.Join(lines, "\n")
}

// summary returns the values and the default that a doc comment gives. A value is the beginning of an item of a list,
// up to a colon, and the default is a paragraph of its own.
func (a *annotations) summary(text string) (values, otherwise string) {
	printer := &comment.Printer{TextWidth: -1}
	plain := func(content ...comment.Block) string {
		return strings.TrimSpace(string(printer.Text(&comment.Doc{Content: content})))
	}
	var found []string
	for _, block := range a.from.pkg.Parser().Parse(text).Content {
		switch block := block.(type) {
		case *comment.List:
			for _, item := range block.Items {
				value, _, _ := strings.Cut(plain(item.Content...), ":")
				if !strings.Contains(value, " ") {
					value = "`" + value + "`"
				}
				found = append(found, value)
			}
		case *comment.Paragraph:
			if rest, ok := strings.CutPrefix(plain(block), "Default: "); ok {
				otherwise = strings.TrimSuffix(rest, ".")
			}
		}
	}
	return strings.Join(found, ", "), otherwise
}

func (a *annotations) list(v *vocabulary, annotations []annotation) string {
	var items []string
	for _, annotation := range annotations {
		text := v.markdown(a.from, annotation.text(annotation.name), "nodes/", textWidth-2)
		items = append(items, listItem("- ", text))
	}
	return strings.Join(items, "\n")
}
