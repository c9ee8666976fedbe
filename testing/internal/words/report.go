package words

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// Report has what failed in a row, and what would be expected instead. One without an Origin is that of a test without
// a test case: it fails the test at once.
type Report struct {
	// Origin is where the row is.
	Origin *Origin
	// Notes say what may be the cause of the failures.
	Notes []string

	failures []Failure
	// texts are those of all failures that there were.
	texts   []string
	updates map[field]*Change
	// updated says that the row in the file has other expectations now than the row that ran.
	updated bool
	// looked says that it is known whether the row has something that is to be read.
	looked bool
}

// HasFailures reports whether Fail would fail the test.
func (r *Report) HasFailures() bool { return len(r.failures) > 0 }

// Texts are those of all failures that there were.
func (r *Report) Texts() []string { return r.texts }

// IsUpdated reports whether the row in the file has other expectations now than the row that ran.
func (r *Report) IsUpdated() bool { return r.updated }

// Page is the part of a report that is about one config.
type Page struct {
	Report *Report
	// Config is the name of the config; empty or "default" for the one of the row itself.
	Config string
	Colors Colors
}

// Suffix names the config in a message.
func (p Page) Suffix() string {
	if p.Config == "" || p.Config == "default" {
		return ""
	}
	return fmt.Sprintf(" for config %q", p.Config)
}

// Differs returns what differs in the config, with a diff and an explanation of its signs.
func (p Page) Differs(what, diff string) string {
	legend := "(" + p.Colors.Removed.Sprint("-expected") + ", " + p.Colors.Added.Sprint("+actual") + ")"
	return what + p.Suffix() + " " + legend + ":\n" + p.Colors.Diff(diff)
}

// Writer returns what writes literals for the file of the test.
func (p Page) Writer() *literal.Writer {
	if p.Report.Origin == nil {
		return (&Origin{callers: callers()}).writer()
	}
	return p.Report.Origin.writer()
}

// Given returns the expression of one of so many given objects of a field, if the row is found.
func (p Page) Given(field string, i, of int) (text string, ok bool) {
	row, err := p.Report.Origin.location()
	if err != nil {
		return "", false
	}
	if _, texts, ok := row.Elements(field); ok {
		if len(texts) == of {
			return texts[i], true
		}
		return "", false
	}
	text, ok = row.Field(field)
	return text, ok && of == 1
}

// Set returns the change of a field to a value; a zero value removes the field.
func (p Page) Set(name string, value any) *Change {
	if v := reflect.ValueOf(value); !v.IsValid() || v.IsZero() {
		value = nil
	}
	return &Change{field: p.fieldOf(name), value: value}
}

// List returns the change of a list of so many expectations.
func (p Page) List(name string, typ reflect.Type, expected int, elements []Element) *Change {
	return &Change{field: p.fieldOf(name), listType: typ, elements: elements, expected: expected}
}

func (p Page) fieldOf(name string) field {
	if p.Suffix() == "" {
		return field{name: name}
	}
	return field{config: p.Config, name: name}
}

// Add notes a failure, and fails the test if there is one: at once, or at the end of its row. To, unless nil, is the
// change with which the test would not fail.
func (p Page) Add(t *testing.T, f Failure, to *Change) {
	r := p.Report
	r.texts = append(r.texts, f.Text())
	if to != nil && r.Origin != nil {
		f.field = to.field
		if r.updates == nil {
			r.updates = map[field]*Change{}
		}
		r.updates[to.field] = to
	}
	switch {
	case t == nil:
	case r.Origin == nil:
		t.Helper()
		t.Error(f.Text())
	default:
		r.failures = append(r.failures, f)
	}
}

// Fail fails the test for all that was noted. What differs comes first, then the details. With the flag for it, it
// writes what was seen into the row instead.
func (r *Report) Fail(t *testing.T) {
	t.Helper()
	r.failIfUnread(t)
	r.update(t)
	failures, notes := r.failures, slices.Clone(r.Notes)
	r.failures, r.Notes, r.updates = nil, nil, nil
	for i, note := range notes {
		notes[i] = "Note: " + note
	}
	switch len(failures) {
	case 0:
		for _, note := range notes {
			t.Log(note)
		}
		return
	case 1:
		t.Error(r.Origin.located(failures[0]).Text(notes...))
		return
	}
	var parts []string
	for i, f := range failures {
		if i == 0 {
			f = r.Origin.located(f)
		}
		parts = append(parts, f.summary())
	}
	parts = append(parts, notes...)
	for _, f := range failures {
		if f.Details != "" {
			parts = append(parts, "", f.Details)
		}
	}
	t.Error(strings.Join(parts, "\n"))
}

// Fail fails the test of a row.
func (o *Origin) Fail(t *testing.T, f Failure) {
	t.Helper()
	t.Error(o.located(f).Text())
}

// located returns the failure with the line of the row in its headline.
func (o *Origin) located(f Failure) Failure {
	if row, err := o.location(); err == nil {
		f.Headline = "row at " + row.Line() + ": " + f.Headline
	}
	return f
}
