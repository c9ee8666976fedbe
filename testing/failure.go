package testing

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// failure is a difference from the expectations of a test.
type failure struct {
	// headline says which expectation fails, how, and for which object.
	headline string
	// at is the first field that differs, empty if the failure is about no field.
	at string
	// expected and seen are what was expected and what was seen there, both in a few words.
	expected, seen string
	// details are lines that say more.
	details string
	// field is the field of a test case that expects something else, empty if the failure is about no field.
	field fieldOfCase
}

// fieldOfCase is a field of a test case, or of one of its AdditionalConfigs.
type fieldOfCase struct{ config, name string }

// summary returns the first lines of the failure: five at most, with the line of the row.
func (f failure) summary() string {
	lines := []string{f.headline}
	for _, part := range []struct{ name, text string }{
		{"field:    ", f.at}, {"expected: ", f.expected}, {"seen:     ", f.seen},
	} {
		if part.text != "" {
			lines = append(lines, "  "+part.name+part.text)
		}
	}
	return strings.Join(lines, "\n")
}

// text returns all of the failure, with notes after its first lines.
func (f failure) text(notes ...string) string {
	parts := append([]string{f.summary()}, notes...)
	if f.details != "" {
		parts = append(parts, f.details)
	}
	return strings.Join(parts, "\n")
}

// report has what failed in a row, and what would be expected instead.
type report struct {
	origin   *origin
	failures []failure
	// lacksError reports whether an expected error was not returned.
	lacksError bool
	// notes say what may be the cause of the failures.
	notes   []string
	updates map[fieldOfCase]update
	// updated says that the row in the file has other expectations now than the row that ran.
	updated bool
}

// add remembers a failure until the end of the row. Without a report the test fails at once.
func (r *report) add(t *testing.T, f failure) {
	switch {
	case t == nil:
	case r == nil:
		t.Helper()
		t.Error(f.text())
	default:
		r.failures = append(r.failures, f)
	}
}

// fail fails the test for all that was added. What differs comes first, then the details.
func (r *report) fail(t *testing.T) {
	t.Helper()
	r.update(t)
	failures, notes := r.failures, slices.Clone(r.notes)
	r.failures, r.notes, r.updates = nil, nil, nil
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
		t.Error(r.located(failures[0]).text(notes...))
		return
	}
	var parts []string
	for i, f := range failures {
		if i == 0 {
			f = r.located(f)
		}
		parts = append(parts, f.summary())
	}
	parts = append(parts, notes...)
	for _, f := range failures {
		if f.details != "" {
			parts = append(parts, "", f.details)
		}
	}
	t.Error(strings.Join(parts, "\n"))
}

// located returns the failure with the line of the row in its headline.
func (r *report) located(f failure) failure {
	if row, err := r.origin.location(); err == nil {
		f.headline = "row at " + row.Line() + ": " + f.headline
	}
	return f
}

// shortest is how long a value may be in a summary, in characters.
const shortest = 100

// short returns a value in a few words of Go.
func short(v reflect.Value, w *literal.Writer) string {
	if !v.IsValid() {
		return "nothing"
	}
	text := w.Short(v)
	if runes := []rune(text); len(runes) > shortest {
		return string(runes[:shortest]) + "..."
	}
	return text
}

// count returns a number of calls in words.
func count(n int, kind string) string {
	switch n {
	case 0:
		return "no " + kind
	case 1:
		return "1 " + kind
	}
	if strings.HasSuffix(kind, "y") || strings.HasSuffix(kind, "h") {
		return fmt.Sprintf("%d times %s", n, kind)
	}
	return fmt.Sprintf("%d %ss", n, kind)
}
