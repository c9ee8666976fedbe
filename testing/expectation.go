package testing

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/literal"
)

// expectation compares calls of one kind: E is the type in a table, A the recorded type.
type expectation[E, A any] struct {
	// field is the field of a test case that holds the expected values.
	field string
	// kind is the word for one call.
	kind string
	// name names what a call is about.
	name func(E) string
	// found returns a recorded call in the type of a table.
	found func(A) E
	// observed is found with the fields that are compared only if the expected value sets them; nil is found.
	observed func(E, A) E
	// diff compares as a Differ does.
	diff func(d Differ, expected, actual E) string
	// options compares the options of the call at an index with those that its expectation demands beside its value;
	// nil compares none.
	options func(i int, call A) string
	// literals returns values that may expect a call, the shortest first; nil is found.
	literals func(A) []E
	// written returns what is written in a table for a value; nil is the value.
	written func(E) any
	// withOptions adds the options of a call to what is written for it; nil adds none.
	withOptions func(value any, call A) any
}

func (e expectation[E, A]) assert(c *ExpectConfig, t *testing.T, expected []E, actual []A) {
	if t != nil {
		t.Helper()
	}
	var failures []failure
	for i, want := range expected {
		if i >= len(actual) {
			failures = append(failures, e.missing(c, i, want, actual))
			continue
		}
		if diff := e.diff(c.differ(), want, e.observe(want, actual[i])); diff != "" {
			failures = append(failures, e.different(c, i, want, actual[i], diff))
			continue
		}
		if e.options == nil {
			continue
		}
		if diff := e.options(i, actual[i]); diff != "" {
			failures = append(failures, e.otherOptions(c, i, want, actual[i], diff))
		}
	}
	for _, extra := range actual[min(len(expected), len(actual)):] {
		failures = append(failures, e.unexpected(c, len(expected), len(actual), extra))
	}
	if len(failures) == 0 {
		return
	}
	if order := e.permutation(c, expected, actual); order != nil {
		failures = []failure{e.reordered(c, order, expected)}
	}
	set := c.list(e.field, reflect.TypeFor[[]E](), len(expected), e.elements(c, expected, actual))
	for _, f := range failures {
		c.fail(t, f, set)
	}
}

// missing is the failure of an expectation without a call.
func (e expectation[E, A]) missing(c *ExpectConfig, i int, want E, actual []A) failure {
	seen := make([]string, len(actual))
	for j, call := range actual {
		seen[j] = e.name(e.found(call))
	}
	w := c.from().writer()
	return failure{
		headline: fmt.Sprintf("%s[%d] not observed%s: %s", e.field, i, c.suffix(), e.name(want)),
		expected: count(i+1, e.kind),
		seen:     strings.TrimSuffix(count(len(actual), e.kind)+": "+strings.Join(seen, ", "), ": "),
		details:  fmt.Sprintf("%s[%d] not observed%s:\n%s", e.field, i, c.suffix(), w.Of(e.write(want))),
	}
}

// different is the failure of an expectation that a call does not meet.
func (e expectation[E, A]) different(c *ExpectConfig, i int, want E, call A, diff string) failure {
	w := c.from().writer()
	f := describe(c.differ(), w, diff, func(d Differ) string { return e.diff(d, want, e.observe(want, call)) })
	at := fmt.Sprintf("%s[%d]", e.field, i)
	f.headline = fmt.Sprintf("%s differs%s: %s", at, c.suffix(), e.name(want))
	f.details = fmt.Sprintf("%s differs%s %s:\n%s%s", at, c.suffix(), legend(), ColorizeDiff(diff),
		hint("To expect it, set "+at+" to:", w, e.literal(c, call)))
	return f
}

// otherOptions is the failure of an expectation that a call meets except for its options.
func (e expectation[E, A]) otherOptions(c *ExpectConfig, i int, want E, call A, diff string) failure {
	w := c.from().writer()
	at := fmt.Sprintf("%s[%d]", e.field, i)
	return failure{
		headline: fmt.Sprintf("%s differs in its options%s: %s", at, c.suffix(), e.name(want)),
		expected: firstLine(diff, "-"), seen: firstLine(diff, "+"),
		details: fmt.Sprintf("%s differs in its options%s %s:\n%s%s", at, c.suffix(), legend(), ColorizeDiff(diff),
			hint("To expect it, set "+at+" to:", w, e.literal(c, call))),
	}
}

// unexpected is the failure of a call without an expectation.
func (e expectation[E, A]) unexpected(c *ExpectConfig, expected, seen int, call A) failure {
	return failure{
		headline: fmt.Sprintf("Unexpected %s observed%s: %s", e.kind, c.suffix(), e.name(e.found(call))),
		expected: count(expected, e.kind),
		seen:     count(seen, e.kind),
		details:  hint("To expect it, add to "+e.field+":", c.from().writer(), e.literal(c, call)),
	}
}

func (e expectation[E, A]) observe(want E, call A) E {
	if e.observed != nil {
		return e.observed(want, call)
	}
	return e.found(call)
}

// literal returns what a table has to have for a call.
func (e expectation[E, A]) literal(c *ExpectConfig, call A) any {
	values := []E{e.found(call)}
	if e.literals != nil {
		values = e.literals(call)
	}
	value := matching(values, func(value E) bool { return e.diff(c.differ(), value, e.observe(value, call)) == "" })
	if e.withOptions != nil {
		return e.withOptions(e.write(value), call)
	}
	return e.write(value)
}

func (e expectation[E, A]) write(value E) any {
	if e.written != nil {
		return e.written(value)
	}
	return value
}

// elements returns what the list of expectations would have to be. An expectation that is met stays.
func (e expectation[E, A]) elements(c *ExpectConfig, expected []E, actual []A) []element {
	elements := make([]element, len(actual))
	next := 0
	for i, call := range actual {
		elements[i] = element{keeps: -1, value: e.literal(c, call)}
		for j := next; j < len(expected); j++ {
			if e.diff(c.differ(), expected[j], e.observe(expected[j], call)) == "" &&
				(e.options == nil || e.options(j, call) == "") {
				elements[i].keeps, next = j, j+1
				break
			}
		}
	}
	return elements
}

// hint returns a text with a literal to paste, and the imports that it needs.
func hint(text string, w *literal.Writer, value any) string {
	expression := w.Of(value)
	hint := text + "\n" + expression + ","
	if problem := w.Problem(); problem != "" {
		hint += "\nIt does not compile: " + problem + "."
	}
	if lines := importLines(w.Missing(expression)); len(lines) > 0 {
		hint += "\nIt needs the imports:\n" + strings.Join(lines, "\n")
	}
	return hint
}
