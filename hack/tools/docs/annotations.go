package main

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

// annotations are groups of constants that are called Annotation or Label and something, in the order of the source.
type annotations struct {
	*source
	groups []group
}

// group is constants that are declared together.
type group struct {
	doc       string
	constants []constant
}

type constant struct{ name, value, doc string }

// loadAnnotations finds the groups of package generator. Package ownership has the values of some of them.
func loadAnnotations(root string) (a *annotations, err error) {
	values := map[string]string{}
	for _, folder := range []string{"internal/ownership", "generator"} {
		from, err := load(root, folder)
		if err != nil {
			return nil, err
		}
		a = &annotations{source: from}
		for _, declared := range from.pkg.Consts {
			g := group{doc: declared.Doc}
			for _, spec := range declared.Decl.Specs {
				c := constantOf(spec.(*ast.ValueSpec), values)
				values[c.name] = c.value
				if strings.HasPrefix(c.name, "Annotation") || strings.HasPrefix(c.name, "Label") {
					g.constants = append(g.constants, c)
				}
			}
			if declared.Decl.Lparen.IsValid() && len(g.constants) > 0 {
				a.groups = append(a.groups, g)
			}
		}
	}
	return a, nil
}

// constantOf returns a constant whose value is a text, or the name of one that has a value.
func constantOf(spec *ast.ValueSpec, values map[string]string) constant {
	c := constant{name: spec.Names[0].Name, doc: spec.Doc.Text()}
	for _, value := range spec.Values {
		switch value := value.(type) {
		case *ast.BasicLit:
			c.value, _ = strconv.Unquote(value.Value) // a number has none
		case *ast.SelectorExpr:
			c.value = values[value.Sel.Name]
		}
	}
	return c
}

var (
	// value matches a value of an annotation: the beginning of an item of a list, up to a colon.
	value = regexp.MustCompile(`(?m)^ *- ([^:\n]+)`)
	// valueInList matches a value that is one word, in Markdown.
	valueInList = regexp.MustCompile(`(?m)^( *- )([a-zA-Z=;-]+):`)
	// byDefault matches the paragraph with the default.
	byDefault = regexp.MustCompile(`(?ms)^Default: (.+?)\.?\n(\n|\z)`)
)

// page describes all annotations: those of the first group in a table and in sections, the others in lists.
func (a *annotations) page() string {
	first := a.groups[0]
	const head = "| Annotation | Values | Default |\n|---|---|---|"
	parts := []string{"# Annotations of the objects of a component", a.markdown(first.doc), "## All annotations", head}
	for _, c := range first.constants {
		parts[3] += "\n| [`" + c.value + "`](#" + c.value + ") | " + c.summary() + " |"
		text := a.markdown(strings.Replace(c.doc, c.name, "The annotation "+c.value, 1))
		parts = append(parts, "## "+c.value, valueInList.ReplaceAllString(text, "$1`$2`:"))
	}
	for _, g := range a.groups[1:] {
		list := "\n"
		for _, c := range g.constants {
			list += "  - " + strings.ReplaceAll(strings.Replace(c.doc, c.name, c.value, 1), "\n", " ") + "\n"
		}
		parts = append(parts, "## Written by the component", a.markdown(g.doc+list))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// summary returns the values and the default that the doc comment gives, as cells of a table.
func (c constant) summary() string {
	var values []string
	for _, match := range value.FindAllStringSubmatch(c.doc, -1) {
		if !strings.Contains(match[1], " ") {
			match[1] = "`" + match[1] + "`"
		}
		values = append(values, match[1])
	}
	otherwise := append(byDefault.FindStringSubmatch(c.doc+"\n"), "", "")[1]
	return strings.Join(values, ", ") + " | " + strings.Join(strings.Fields(otherwise), " ")
}
