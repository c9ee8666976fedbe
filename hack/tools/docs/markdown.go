package main

import (
	"go/doc/comment"
	"go/format"
	"regexp"
	"slices"
	"strings"
)

// textWidth is where lines of text end.
const textWidth = 120

// markdown returns a doc comment of a package as Markdown, in lines of the given width. Links to nodes begin with the
// way to the folder of their pages.
func (v *vocabulary) markdown(from *source, text, way string, width int) string {
	printer := from.pkg.Printer()
	printer.HeadingLevel = 2
	printer.HeadingID = func(*comment.Heading) string { return "" } // what shows the page makes them
	printer.DocLinkURL = func(link *comment.DocLink) string { return v.linkURL(from, link, way) }
	m := markdown{printer, width}
	return m.blocks(from.pkg.Parser().Parse(text).Content)
}

// linkURL leads to the page of a node, or to the reference.
func (v *vocabulary) linkURL(from *source, link *comment.DocLink, way string) string {
	target := *link
	if target.ImportPath == "" {
		target.ImportPath = from.pkg.ImportPath
	}
	for _, n := range v.nodes {
		switch {
		case target.ImportPath != n.from.pkg.ImportPath:
		case target.Recv == "" && target.Name == n.name:
			return way + n.page()
		case target.Recv == n.name && n.hasField(target.Name):
			return way + n.page() + "#fields"
		}
	}
	return target.DefaultURL(referenceURL)
}

// referenceURL is where packages are documented.
const referenceURL = "https://pkg.go.dev"

func (n node) hasField(name string) bool {
	return slices.ContainsFunc(n.fields, func(f field) bool { return slices.Contains(f.names, name) })
}

// markdown prints what the printer does, with broken lines, fenced code, and lists that begin at the margin.
type markdown struct {
	printer *comment.Printer
	width   int
}

func (m markdown) blocks(blocks []comment.Block) string {
	var printed []string
	for _, block := range blocks {
		switch block := block.(type) {
		case *comment.Code:
			printed = append(printed, fenced(languageOf(block.Text), block.Text))
		case *comment.List:
			printed = append(printed, m.list(block))
		case *comment.Heading:
			printed = append(printed, m.print(block))
		default:
			printed = append(printed, wrapped(m.print(block), m.width))
		}
	}
	return strings.Join(printed, "\n\n")
}

func (m markdown) print(block comment.Block) string {
	return strings.TrimSpace(string(m.printer.Markdown(&comment.Doc{Content: []comment.Block{block}})))
}

func (m markdown) list(list *comment.List) string {
	var items []string
	for _, item := range list.Items {
		marker := "- "
		if item.Number != "" {
			marker = item.Number + ". "
		}
		var paragraphs []string
		for _, block := range item.Content {
			paragraphs = append(paragraphs, wrapped(m.print(block), m.width-len(marker)))
		}
		items = append(items, listItem(marker, strings.Join(paragraphs, "\n\n")))
	}
	if list.BlankBetween() {
		return strings.Join(items, "\n\n")
	}
	return strings.Join(items, "\n")
}

// listItem puts text beside a marker.
func listItem(marker, text string) string {
	indented := strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(marker)))
	return marker + trailing.ReplaceAllString(indented, "")
}

var trailing = regexp.MustCompile(`(?m) +$`)

// startsBlock matches words that would not be text at the beginning of a line.
var startsBlock = regexp.MustCompile(`^([-+*=>#|~:]|[0-9]+[.)])`)

// wrapped breaks text into lines. A word may be longer than a line.
func wrapped(text string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width && !startsBlock.MatchString(word):
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

// fenced returns a block of code.
func fenced(language, code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.Trim(code, "\n") + "\n" + fence
}

// languageOf returns go for Go code, and else nothing.
func languageOf(code string) string {
	if _, err := format.Source([]byte(code)); err != nil {
		return ""
	}
	return "go"
}
