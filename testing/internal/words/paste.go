package words

import (
	"go/format"
	"maps"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/source"
)

// Paste writes a row for the file of its table.
type Paste struct {
	origin *Origin
	// row is the row in the file; nil if it is not found.
	row *source.Row
	// imports are import paths that the file lacks, by import name.
	imports map[string]string
	text    strings.Builder
}

// NewPaste returns a Paste for the table of a row, of that name.
func (o *Origin) NewPaste(name string) *Paste {
	p := &Paste{origin: o, imports: map[string]string{}}
	p.row, _ = o.location()
	p.text.WriteString(p.of(name) + ": {\n")
	return p
}

// String returns the row, and the imports that it needs.
func (p *Paste) String() string {
	const before, after = "package p\n\nvar rows = map[string]T{\n", "\n}\n"
	entry := p.text.String() + "},"
	if text, err := format.Source([]byte(before + entry + after)); err == nil {
		entry = strings.TrimSuffix(strings.TrimPrefix(string(text), before), after)
	}
	return entry + neededImports(p.imports)
}

// of returns a value as an expression.
func (p *Paste) of(value any) string {
	w := p.origin.writer()
	text := w.Of(value)
	maps.Copy(p.imports, w.Missing(text))
	return text
}

func (p *Paste) add(name, text string) { p.text.WriteString(name + ": " + text + ",\n") }

// Value writes a field with an expression of its value.
func (p *Paste) Value(name string, value any) { p.add(name, p.of(value)) }

// written are the fields whose values can be written if the row in the file is not found: others have functions.
var written = map[string]bool{
	"Resource": true, "Request": true, "GivenObjects": true, "APIGivenObjects": true, "GivenAPIResources": true,
	"GivenTracks": true, "GivenStashedValues": true, "Now": true,
}

// Field writes a field: as the row has it, or as an expression of its value.
func (p *Paste) Field(name string, value any) {
	if p.row != nil {
		if text, ok := p.row.Field(name); ok {
			p.add(name, text)
			return
		}
	}
	switch given := value.(type) {
	case client.Object:
		value = objects.Copy(given)
	case []client.Object:
		value = objects.CopyAll(given)
	}
	w := p.origin.writer()
	text := w.Of(value)
	if !written[name] || w.Problem() != "" {
		p.text.WriteString("// " + name + " as in the row\n")
		return
	}
	maps.Copy(p.imports, w.Missing(text))
	p.add(name, text)
}

// List writes a list of given objects with some of them, by their indices.
func (p *Paste) List(name string, all []client.Object, some []int) {
	var typ string
	var texts []string
	inRow := false
	if p.row != nil {
		typ, texts, inRow = p.row.Elements(name)
	}
	switch {
	case len(some) == 0:
	case len(some) == len(all):
		p.Field(name, all)
	case inRow && len(texts) == len(all):
		var kept []string
		for _, i := range some {
			kept = append(kept, texts[i])
		}
		p.add(name, typ+"{"+strings.Join(kept, ", ")+"}")
	default:
		kept := make([]client.Object, len(some))
		for at, i := range some {
			kept[at] = all[i]
		}
		p.Value(name, objects.CopyAll(kept))
	}
}
