package testing

import (
	"context"
	"fmt"
	"go/format"
	"maps"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/replay"
	"github.com/espalier-dev/espalier/testing/internal/source"
)

// maxOthers is how many findings are listed beside the first.
const maxOthers = 10

// fail fails the test for what replays have found: the first finding with the smallest row that shows it, the others in
// a line each.
func (r *replayed) fail(t *testing.T, ctx context.Context, findings []replay.Finding, options replay.Options) {
	t.Helper()
	if len(findings) == 0 {
		return
	}
	first, others, paste := findings[0], findings[1:], ""
	if r.fault.isZero() {
		shrinking, cancel := beforeDeadline(ctx)
		defer cancel()
		var kept []shrunk
		kept, first = replay.Shrink(shrinking, r.shrinkable(), func(some []shrunk) (replay.Program, error) {
			return r.program(t, r.with(some))
		}, first, options)
		paste = "\nTo replay this alone, paste the row:\n" + r.pastable(Fault{faults: first.Faults}, kept)
	}
	report := &report{origin: r.origin, failures: []failure{{
		headline: fmt.Sprintf("replayed with %s, the row ends in another way", Fault{faults: first.Faults}),
		details:  told(first) + listed(others) + paste,
	}}}
	report.fail(t)
}

// failUnrest fails the test for requests that go on without a fault.
func (r *replayed) failUnrest(t *testing.T, f replay.Finding) {
	t.Helper()
	report := &report{origin: r.origin, failures: []failure{{
		headline: "without a fault, the row never comes to rest",
		details: told(f) + `
The requests after the first find what it has left: let them change nothing and return no error. If the code waits for
somebody else, let its result ask for a delay. To leave it as it is, set:
  Replays: rtesting.NoReplays("why it never comes to rest"),`,
	}}}
	report.fail(t)
}

// told returns the story of a finding and how it ends, with what their words mean.
func told(f replay.Finding) string {
	return "  story:      " + f.Story + "\n  at the end: " + strings.Join(f.Differences, indented) + explained(f)
}

// indented begins a line under another one of a finding.
const indented = "\n              "

// listed lists findings.
func listed(findings []replay.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	text := fmt.Sprintf("\nSo it does with %s:", count(len(findings), "other fault"))
	for i, f := range findings {
		if i == maxOthers {
			return text + "\n  ..."
		}
		text += fmt.Sprintf("\n  %s: %s", Fault{faults: f.Faults}, f.Differences[0])
	}
	return text
}

// shrunk is a given object that the smallest row may lack.
type shrunk struct {
	object client.Object
	// field and index are where the row has it.
	field string
	index int
}

// shrinkable returns the given objects that the smallest row may lack. There are none if Prepare may have changed what
// the row gives.
func (r *replayed) shrinkable() []shrunk {
	var all []shrunk
	if r.prepares {
		return nil
	}
	for i, obj := range r.expect.GivenObjects {
		if i != r.expect.reconciled || !r.ofNode {
			all = append(all, shrunk{obj, "GivenObjects", i})
		}
	}
	for i, obj := range r.expect.APIGivenObjects {
		all = append(all, shrunk{obj, "APIGivenObjects", i})
	}
	return all
}

// with returns the config of the row with those of the shrinkable objects that are kept.
func (r *replayed) with(kept []shrunk) ExpectConfig {
	c := *r.expect
	if r.prepares {
		return c
	}
	c.GivenObjects, c.APIGivenObjects, c.reconciled = nil, nil, -1
	for _, given := range kept {
		if given.field == "APIGivenObjects" {
			c.APIGivenObjects = append(c.APIGivenObjects, given.object)
		} else {
			c.GivenObjects = append(c.GivenObjects, given.object)
		}
	}
	if r.ofNode {
		c.reconciled = len(c.GivenObjects)
		c.GivenObjects = append(c.GivenObjects, r.expect.GivenObjects[r.expect.reconciled])
	}
	return c
}

// pastable returns the row with a fault, those of the shrinkable objects that are kept, and no expectations.
func (r *replayed) pastable(fault Fault, kept []shrunk) string {
	p := paste{origin: r.origin, imports: map[string]string{}}
	p.row, _ = r.origin.location()
	text := p.of(r.name+": "+fault.String()) + ": {\n"
	row := reflect.ValueOf(r.row).Elem()
	for i := range row.NumField() {
		field, value := row.Type().Field(i), row.Field(i)
		if !field.IsExported() || value.IsZero() || isExpectation(field.Name) || unpasted[field.Name] {
			continue
		}
		list, isList := value.Interface().([]client.Object)
		if isList && !r.prepares && strings.HasSuffix(field.Name, "GivenObjects") {
			text += p.list(field.Name, list, kept)
			continue
		}
		text += p.field(field.Name, value.Interface())
	}
	text += "Fault: " + p.of(fault.expression()) + ",\n},"
	if lines := importLines(p.imports); len(lines) > 0 {
		return formatted(text) + "\nIt needs the imports:\n" + strings.Join(lines, "\n")
	}
	return formatted(text)
}

// unpasted are fields of a case that the smallest row does not need.
var unpasted = map[string]bool{
	"Name": true, "Focus": true, "Skip": true, "Fault": true, "Differ": true, "Until": true,
	"VerifyStashedValue": true, "StatusSubResourceTypes": true, "AdditionalReconciles": true,
}

// written are the fields whose values can be written if the row in the file is not found: others have functions.
var written = map[string]bool{
	"Resource": true, "Request": true, "GivenObjects": true, "APIGivenObjects": true, "GivenAPIResources": true,
	"GivenTracks": true, "GivenStashedValues": true, "Now": true,
}

// paste writes a row for the file of its table.
type paste struct {
	origin *origin
	// row is the row in the file; nil if it is not found.
	row *source.Row
	// imports are import paths that the file lacks, by import name.
	imports map[string]string
}

// of returns a value as an expression.
func (p *paste) of(value any) string {
	w := p.origin.writer()
	text := w.Of(value)
	maps.Copy(p.imports, w.Missing(text))
	return text
}

// field writes a field: as the row has it, or as an expression of its value.
func (p *paste) field(name string, value any) string {
	if p.row != nil {
		if text, ok := p.row.Field(name); ok {
			return name + ": " + text + ",\n"
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
		return "// " + name + " as in the row\n"
	}
	maps.Copy(p.imports, w.Missing(text))
	return name + ": " + text + ",\n"
}

// list writes a list of given objects, with those that are kept.
func (p *paste) list(name string, all []client.Object, kept []shrunk) string {
	var indices []int
	for _, given := range kept {
		if given.field == name {
			indices = append(indices, given.index)
		}
	}
	var typ string
	var texts []string
	inRow := false
	if p.row != nil {
		typ, texts, inRow = p.row.Elements(name)
	}
	switch {
	case len(indices) == 0:
		return ""
	case len(indices) == len(all):
		return p.field(name, all)
	case inRow && len(texts) == len(all):
		var some []string
		for _, i := range indices {
			some = append(some, texts[i])
		}
		return name + ": " + typ + "{" + strings.Join(some, ", ") + "},\n"
	default:
		some := make([]client.Object, len(indices))
		for at, i := range indices {
			some[at] = all[i]
		}
		return name + ": " + p.of(objects.CopyAll(some)) + ",\n"
	}
}

// formatted formats an entry of a map.
func formatted(entry string) string {
	const before, after = "package p\n\nvar rows = map[string]T{\n", "\n}\n"
	text, err := format.Source([]byte(before + entry + after))
	if err != nil {
		return entry
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(text), before), after)
}
