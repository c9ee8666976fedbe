// Package literal writes values as the Go expressions that make them, ready to be pasted into a table of test cases.
package literal

import (
	"go/format"
	"reflect"
	"strings"
)

// width is how long a line may be before a composite is broken into one line per element.
const width = 120

// maxDepth ends values that contain themselves.
const maxDepth = 64

// Of returns v as a Go expression. Fields with zero values are left out, maps are sorted by key, and packages have
// their usual import names, such as corev1. Unexported fields, functions and channels are left out or nil, since no
// expression can make them. The same value always gives the same text.
func Of(v any) string {
	e := expression(reflect.ValueOf(v), nil, 0)
	var b strings.Builder
	e.write(&b, 0)
	if formatted, err := format.Source([]byte(b.String())); err == nil {
		return string(formatted)
	}
	return b.String()
}

// node is an expression: a text, or a composite of elements between an opening and a closing text.
type node struct {
	text     string
	open     string
	elements []node
	close    string
	// label stands before the expression: a field name or a map key, with its colon.
	label string
}

func leaf(text string) node { return node{text: text} }

func (n node) isComposite() bool { return n.open != "" }

// flat returns the expression on one line.
func (n node) flat() string {
	if !n.isComposite() {
		return n.label + n.text
	}
	parts := make([]string, len(n.elements))
	for i, element := range n.elements {
		parts[i] = element.flat()
	}
	return n.label + n.open + strings.Join(parts, ", ") + n.close
}

// write writes the expression, over several lines if it is too long for one.
func (n node) write(b *strings.Builder, indent int) {
	line := n.flat()
	if !n.isComposite() || len(n.elements) == 0 || indent*4+len(line) <= width {
		b.WriteString(line)
		return
	}
	b.WriteString(n.label + n.open)
	if n.close == ")" && len(n.elements) == 1 {
		// A call keeps its only argument on its line.
		n.elements[0].write(b, indent)
		b.WriteString(n.close)
		return
	}
	for _, element := range n.elements {
		b.WriteString("\n" + strings.Repeat("\t", indent+1))
		element.write(b, indent+1)
		b.WriteString(",")
	}
	b.WriteString("\n" + strings.Repeat("\t", indent) + n.close)
}
