package check

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/espalier-dev/espalier/testing/internal/words"
)

// Value compares a field of a case that is one value.
type Value[T any] struct {
	// Field is the field.
	Field string
	// About says what the value is about; empty for nothing.
	About string
	// Diff compares, and returns an empty text for equal values. First, unless nil, is to note the first difference.
	Diff func(first *First, expected, actual T) string
	// Literals returns values that may expect the actual value, the shortest first; nil for none but the value.
	Literals func() []T
	// Written returns what is written for a value if that is shorter; nil for the value. Meets reports whether a value
	// meets the actual one.
	Written func(value T, meets func(T) bool) any
	// Change, unless nil, expects the actual value. The default sets the Field.
	Change *words.Change
}

// Assert reports a difference.
func (v Value[T]) Assert(page words.Page, t *testing.T, expected, actual T) {
	if t != nil {
		t.Helper()
	}
	diff := v.Diff(nil, expected, actual)
	if diff == "" {
		return
	}
	literals := []T{actual}
	if v.Literals != nil {
		literals = append(v.Literals(), actual)
	}
	meets := func(value T) bool { return v.Diff(nil, value, actual) == "" }
	var value any = matching(literals, meets)
	if v.Written != nil {
		if shorter := v.Written(value.(T), meets); shorter != nil {
			value = shorter
		}
	}
	change := v.Change
	if change == nil {
		change = page.Set(v.Field, value)
	}
	w := page.Writer()
	f := describe(w, diff, func(first *First) { v.Diff(first, expected, actual) })
	f.Headline = v.Field + " differs" + page.Suffix()
	if v.About != "" {
		f.Headline += ": " + v.About
	}
	f.Details = page.Differs(v.Field+" differs", diff) + words.Hint("To expect it, set "+v.Field+" to:", w, value)
	page.Add(t, f, change)
}

// Set compares the values of a field of a case by their texts, in any order. Where says where in the row the field is;
// empty for in the row itself.
func Set[T any](page words.Page, t *testing.T, where, field string, expected, actual []T, text func(T) string) {
	t.Helper()
	diff := func(first *First) string {
		return Diff(first, Texts(expected, text), Texts(actual, text), cmpopts.EquateEmpty())
	}
	differs := diff(nil)
	if differs == "" {
		return
	}
	w := page.Writer()
	f := describe(w, differs, func(first *First) { diff(first) })
	f.At = ""
	f.Headline = where + field + " differs"
	f.Details = page.Differs(f.Headline, differs) + "\n" + words.Hint("To expect it, set it to:", w, actual)
	var change *words.Change
	if where == "" {
		change = page.Set(field, actual)
	}
	page.Add(t, f, change)
}

// Texts returns the texts of values, sorted.
func Texts[T any](values []T, text func(T) string) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = text(value)
	}
	slices.Sort(texts)
	return texts
}
