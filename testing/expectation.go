package testing

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/words"
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
	var failures []words.Failure
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
		failures = []words.Failure{e.reordered(c, order, expected)}
	}
	set := c.page().List(e.field, reflect.TypeFor[[]E](), len(expected), e.elements(c, expected, actual))
	for _, f := range failures {
		c.page().Add(t, f, set)
	}
}

// missing is the failure of an expectation without a call.
func (e expectation[E, A]) missing(c *ExpectConfig, i int, want E, actual []A) words.Failure {
	seen := make([]string, len(actual))
	for j, call := range actual {
		seen[j] = e.name(e.found(call))
	}
	w := c.page().Writer()
	return words.Failure{
		Headline: fmt.Sprintf("%s[%d] not observed%s: %s", e.field, i, c.page().Suffix(), e.name(want)),
		Expected: words.Count(i+1, e.kind),
		Seen:     strings.TrimSuffix(words.Count(len(actual), e.kind)+": "+strings.Join(seen, ", "), ": "),
		Details:  fmt.Sprintf("%s[%d] not observed%s:\n%s", e.field, i, c.page().Suffix(), w.Of(e.write(want))),
	}
}

// different is the failure of an expectation that a call does not meet.
func (e expectation[E, A]) different(c *ExpectConfig, i int, want E, call A, diff string) words.Failure {
	w := c.page().Writer()
	f := describe(c.differ(), w, diff, func(d Differ) string { return e.diff(d, want, e.observe(want, call)) })
	at := fmt.Sprintf("%s[%d]", e.field, i)
	f.Headline = fmt.Sprintf("%s differs%s: %s", at, c.page().Suffix(), e.name(want))
	f.Details = fmt.Sprintf("%s differs%s %s:\n%s%s", at, c.page().Suffix(), legend(), ColorizeDiff(diff),
		words.Hint("To expect it, set "+at+" to:", w, e.literal(c, call)))
	return f
}

// otherOptions is the failure of an expectation that a call meets except for its options.
func (e expectation[E, A]) otherOptions(c *ExpectConfig, i int, want E, call A, diff string) words.Failure {
	w := c.page().Writer()
	at := fmt.Sprintf("%s[%d]", e.field, i)
	return words.Failure{
		Headline: fmt.Sprintf("%s differs in its options%s: %s", at, c.page().Suffix(), e.name(want)),
		Expected: firstLine(diff, "-"), Seen: firstLine(diff, "+"),
		Details: fmt.Sprintf("%s differs in its options%s %s:\n%s%s", at, c.page().Suffix(), legend(), ColorizeDiff(diff),
			words.Hint("To expect it, set "+at+" to:", w, e.literal(c, call))),
	}
}

// unexpected is the failure of a call without an expectation.
func (e expectation[E, A]) unexpected(c *ExpectConfig, expected, seen int, call A) words.Failure {
	return words.Failure{
		Headline: fmt.Sprintf("Unexpected %s observed%s: %s", e.kind, c.page().Suffix(), e.name(e.found(call))),
		Expected: words.Count(expected, e.kind),
		Seen:     words.Count(seen, e.kind),
		Details:  words.Hint("To expect it, add to "+e.field+":", c.page().Writer(), e.literal(c, call)),
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
func (e expectation[E, A]) elements(c *ExpectConfig, expected []E, actual []A) []words.Element {
	elements := make([]words.Element, len(actual))
	next := 0
	for i, call := range actual {
		elements[i] = words.Element{Keeps: -1, Value: e.literal(c, call)}
		for j := next; j < len(expected); j++ {
			if e.diff(c.differ(), expected[j], e.observe(expected[j], call)) == "" &&
				(e.options == nil || e.options(j, call) == "") {
				elements[i].Keeps, next = j, j+1
				break
			}
		}
	}
	return elements
}
