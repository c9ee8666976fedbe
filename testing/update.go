package testing

import (
	"flag"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/source"
)

const updateFlag = "rtesting.update"

var updateTables = flag.Bool(updateFlag, false, "write what was seen into the rows of tables that fail")

// updating reports whether rows that fail are rewritten. A flag -update of the test itself counts too.
func updating() bool {
	if *updateTables {
		return true
	}
	own := flag.Lookup("update")
	return own != nil && own.Value.String() == "true"
}

// update is what a field of a case would have to be.
type update struct {
	// value is the value of the field; nil removes it. It is unused for a list.
	value any
	// listType is the type of a list, nil for other fields.
	listType reflect.Type
	elements []element
	// expected is the number of elements that the list has.
	expected int
}

// element is an element of a list of expectations.
type element struct {
	// keeps is the index of the element in the row that stays, negative if value takes its place.
	keeps int
	// value is what is written.
	value any
}

// change is an update of a field.
type change struct {
	field fieldOfCase
	update
}

// set returns the change of a field to a value; a zero value removes the field.
func (c *ExpectConfig) set(field string, value any) *change {
	if v := reflect.ValueOf(value); !v.IsValid() || v.IsZero() {
		value = nil
	}
	return &change{field: c.fieldOf(field), update: update{value: value}}
}

// list returns the change of a list of expectations.
func (c *ExpectConfig) list(field string, typ reflect.Type, expected int, elements []element) *change {
	return &change{field: c.fieldOf(field), update: update{listType: typ, elements: elements, expected: expected}}
}

func (c *ExpectConfig) fieldOf(name string) fieldOfCase {
	if c.suffix() == "" {
		return fieldOfCase{name: name}
	}
	return fieldOfCase{config: c.Name, name: name}
}

// from returns where the test of the config is.
func (c *ExpectConfig) from() *origin {
	if c.origin != nil {
		return c.origin
	}
	return &origin{callers: callers()}
}

// fail remembers a failure, and fails the test if there is one: at once, or at the end of its row. To, unless nil, is
// the change with which the test would not fail.
func (c *ExpectConfig) fail(t *testing.T, f failure, to *change) {
	if t != nil {
		t.Helper()
	}
	p := c.made()
	p.failures = append(p.failures, f.text())
	if to != nil && c.report != nil {
		f.field = to.field
		c.report.change(to)
	}
	c.report.add(t, f)
}

// change remembers what a field would have to be.
func (r *report) change(to *change) {
	if r.updates == nil {
		r.updates = map[fieldOfCase]update{}
	}
	r.updates[to.field] = to.update
}

// update writes the fields into the row that were remembered, and forgets their failures. It does so only if the test
// runs with the flag for it.
func (r *report) update(t *testing.T) {
	t.Helper()
	if len(r.updates) == 0 || !updating() {
		return
	}
	row, err := r.origin.location()
	if err != nil {
		t.Logf("The row is not updated: %s. Paste the literals below.", err)
		return
	}
	var updated []string
	for field, u := range r.updates {
		if err := r.write(row, field, u); err != nil {
			t.Logf("%s is not updated: %s", field.name, err)
			continue
		}
		updated = append(updated, field.name)
		r.failures = slices.DeleteFunc(r.failures, func(f failure) bool { return f.field == field })
	}
	slices.Sort(updated)
	if len(updated) > 0 {
		r.updated = true
		t.Logf("The row at %s is updated: %s", row.Line(), strings.Join(updated, ", "))
	}
}

// write writes one field into the row.
func (r *report) write(row *source.Row, field fieldOfCase, u update) error {
	if field.config != "" {
		nested, err := row.In("AdditionalConfigs", field.config)
		if err != nil {
			return err
		}
		row = nested
	}
	w := r.origin.writer()
	text := u.text(row, field.name, w)
	if problem := w.Problem(); problem != "" {
		return fmt.Errorf("the literal does not compile: %s", problem)
	}
	return row.Set(map[string]string{field.name: text}, w.Missing(text))
}

// text returns the new text of a field, empty to remove it.
func (u update) text(row *source.Row, field string, w *literal.Writer) string {
	if u.listType == nil {
		if u.value == nil {
			return ""
		}
		return w.Of(u.value)
	}
	if len(u.elements) == 0 {
		return ""
	}
	typ, kept, written := row.Elements(field)
	if !written {
		typ = w.TypeOf(u.listType)
	}
	lines := make([]string, len(u.elements))
	for i, e := range u.elements {
		if e.keeps >= 0 && len(kept) == u.expected {
			lines[i] = kept[e.keeps]
		} else {
			lines[i] = w.OfElement(e.value, u.listType)
		}
	}
	text := typ + "{\n" + strings.Join(lines, ",\n") + ",\n}"
	if len(lines) == 1 && !strings.Contains(lines[0], "\n") && len(text) < 100 {
		text = typ + "{" + lines[0] + "}"
	}
	return text
}

// importLines returns the lines of an import declaration for import paths by name.
func importLines(imports map[string]string) []string {
	var lines []string
	for name, importPath := range imports {
		line := fmt.Sprintf("\t%s %q", name, importPath)
		if path.Base(importPath) == name {
			line = fmt.Sprintf("\t%q", importPath)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
