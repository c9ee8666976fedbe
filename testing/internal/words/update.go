package words

import (
	"flag"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/literal"
	"github.com/espalier-dev/espalier/testing/internal/source"
)

var updateTables = flag.Bool("rtesting.update", false, "write what was seen into the rows of tables that fail")

// updating reports whether rows that fail are rewritten. A flag -update of the test itself counts too.
func updating() bool {
	if *updateTables {
		return true
	}
	own := flag.Lookup("update")
	return own != nil && own.Value.String() == "true"
}

// field is a field of a test case, or of one of its AdditionalConfigs.
type field struct{ config, name string }

// Change is what a field of a case would have to be.
type Change struct {
	field field
	// value is the value of the field; nil removes it. It is unused for a list.
	value any
	// listType is the type of a list, nil for other fields.
	listType reflect.Type
	elements []Element
	// expected is the number of elements that the list has.
	expected int
}

// Element is an element of a list of expectations.
type Element struct {
	// Keeps is the index of the element in the row that stays, negative if Value takes its place.
	Keeps int
	// Value is what is written.
	Value any
}

// update writes the fields into the row that were remembered, and forgets their failures. It does so only if the test
// runs with the flag for it.
func (r *Report) update(t *testing.T) {
	t.Helper()
	if len(r.updates) == 0 || !updating() {
		return
	}
	row, err := r.Origin.location()
	if err != nil {
		t.Logf("The row is not updated: %s. Paste the literals below.", err)
		return
	}
	var updated []string
	for field, to := range r.updates {
		if err := to.write(row, r.Origin.writer()); err != nil {
			t.Logf("%s is not updated: %s", field.name, err)
			continue
		}
		updated = append(updated, field.name)
		r.failures = slices.DeleteFunc(r.failures, func(f Failure) bool { return f.field == field })
	}
	slices.Sort(updated)
	if len(updated) > 0 {
		r.updated = true
		t.Logf("The row at %s is updated: %s", row.Line(), strings.Join(updated, ", "))
	}
}

// write writes the field into the row.
func (c *Change) write(row *source.Row, w *literal.Writer) error {
	if c.field.config != "" {
		nested, err := row.In("AdditionalConfigs", c.field.config)
		if err != nil {
			return err
		}
		row = nested
	}
	text := c.text(row, w)
	if problem := w.Problem(); problem != "" {
		return fmt.Errorf("the literal does not compile: %s", problem)
	}
	return row.Set(map[string]string{c.field.name: text}, w.Missing(text))
}

// unread is the comment that marks what was written and has to be read. A row that has it fails.
const unread = "// Read this, and remove the comment: -rtesting.update wrote that something is wrong."

// wrong matches what code says that failed.
var wrong = regexp.MustCompile(`\b(Warning|Invalid)\b`)

// marked returns a text that was written, after a comment if it says that something is wrong.
func marked(text string) string {
	if wrong.MatchString(text) {
		return unread + "\n" + text
	}
	return text
}

// failIfUnread fails the test of a row that has something that was written and is to be read.
func (r *Report) failIfUnread(t *testing.T) {
	t.Helper()
	if r.looked {
		return
	}
	r.looked = true
	if row, err := r.Origin.markedRow(); err == nil && row != nil && strings.Contains(row.Text(), unread) {
		t.Errorf("row at %s: it has an expectation that -rtesting.update wrote and nobody has read: %q",
			row.Line(), strings.TrimPrefix(unread, "// "))
	}
}

// text returns the new text of the field, empty to remove it.
func (c *Change) text(row *source.Row, w *literal.Writer) string {
	if c.listType == nil {
		if c.value == nil {
			return ""
		}
		return marked(w.Of(c.value))
	}
	if len(c.elements) == 0 {
		return ""
	}
	typ, kept, written := row.Elements(c.field.name)
	if !written {
		typ = w.TypeOf(c.listType)
	}
	lines := make([]string, len(c.elements))
	for i, e := range c.elements {
		if e.Keeps >= 0 && len(kept) == c.expected {
			lines[i] = kept[e.Keeps]
		} else {
			lines[i] = marked(w.OfElement(e.Value, c.listType))
		}
	}
	text := typ + "{\n" + strings.Join(lines, ",\n") + ",\n}"
	if len(lines) == 1 && !strings.Contains(lines[0], "\n") && len(text) < 100 {
		text = typ + "{" + lines[0] + "}"
	}
	return text
}

// neededImports lists import paths by name in the lines of an import declaration, empty for none.
func neededImports(imports map[string]string) string {
	if len(imports) == 0 {
		return ""
	}
	var lines []string
	for name, importPath := range imports {
		line := fmt.Sprintf("\t%s %q", name, importPath)
		if path.Base(importPath) == name {
			line = fmt.Sprintf("\t%q", importPath)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return "\nIt needs the imports:\n" + strings.Join(lines, "\n")
}
