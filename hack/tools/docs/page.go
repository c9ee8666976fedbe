package main

import (
	"path"
	"strings"
)

// toIndex leads from the page of a node to the index.
const toIndex = "../README.md"

// pageOf returns the page of a node.
func (v *vocabulary) pageOf(n node) string {
	g := groups[n.group]
	parts := []string{
		mark + "# " + n.name,
		wrapped("A ["+g.a+"]("+toIndex+"#"+strings.ToLower(g.title)+") of package "+n.from.link()+":", textWidth),
		fenced("go", n.declaration),
		v.markdown(n.from, n.doc, "", textWidth),
	}
	if len(n.fields) > 0 {
		parts = append(parts, "## Fields")
	}
	for _, f := range n.fields {
		parts = append(parts, listItem("- ", "`"+f.declaration()+"`\n\n"+v.markdown(n.from, f.doc, "", textWidth-2)))
	}
	for _, example := range n.examples {
		parts = append(parts, v.exampleParts(n.from, example)...)
	}
	parts = append(parts, "Next: ["+indexTitle+"]("+toIndex+")")
	return strings.Join(parts, "\n\n") + "\n"
}

func (f field) declaration() string {
	if f.embedded {
		return f.typeExpr
	}
	return strings.Join(f.names, ", ") + " " + f.typeExpr
}

// index returns the page that lists all nodes and guides.
func (v *vocabulary) index(guides []guide) string {
	parts := []string{
		mark + "# " + indexTitle,
		wrapped("A controller is a tree of nodes. Each node of "+v.names()+" has a page with its contract, its fields "+
			"and an example that runs as a test.", textWidth),
	}
	for number, c := range chapters {
		var items []string
		for _, g := range guides {
			if in, _ := g.position(); in == number {
				items = append(items, "- ["+g.title+"]("+g.file+")")
			}
		}
		if len(items) > 0 {
			parts = append(parts, "## "+c.title, strings.Join(items, "\n"))
		}
	}
	for _, g := range groups {
		var items []string
		for _, n := range v.nodes {
			if n.group == g.group {
				items = append(items, v.indexItem(n))
			}
		}
		if len(items) > 0 {
			parts = append(parts, "## "+g.title, g.about, strings.Join(items, "\n"))
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// names lists the packages.
func (v *vocabulary) names() string {
	names := make([]string, len(v.packages))
	for i, from := range v.packages {
		names[i] = from.link()
	}
	if len(names) == 1 {
		return "package " + names[0]
	}
	return "the packages " + strings.Join(names, " and ")
}

// indexItem is the first sentence of the doc comment, in which the name of the node links to its page.
func (v *vocabulary) indexItem(n node) string {
	way := path.Base(nodesFolder) + "/"
	link := "[" + n.name + "](" + way + n.page() + ")"
	sentence := n.from.pkg.Synopsis(n.doc)
	rest, ok := strings.CutPrefix(sentence, n.name+" ")
	if !ok {
		rest, link = sentence, link+":"
	}
	return listItem("- ", wrapped(link+" "+v.markdown(n.from, rest, way, textWidth), textWidth-2))
}
