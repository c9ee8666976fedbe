package check

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/words"
)

// Expectation compares calls of one kind: E is the type in a table, A the recorded type.
type Expectation[E, A any] struct {
	// Field is the field of a test case that holds the expected values.
	Field string
	// Kind is the word for one call.
	Kind string
	// Name names what a call is about.
	Name func(E) string
	// Found returns a recorded call in the type of a table.
	Found func(A) E
	// Observed is Found with the fields that are compared only if the expected value sets them; nil is Found.
	Observed func(E, A) E
	// Diff compares, and returns an empty text for equal values. First, unless nil, is to note the first difference.
	Diff func(first *First, expected, actual E) string
	// Options compares the options of the call at an index with those that its expectation demands beside its value;
	// nil compares none.
	Options func(i int, call A) string
	// Literals returns values that may expect a call, the shortest first; nil is Found.
	Literals func(A) []E
	// Written returns what is written in a table for a value; nil is the value.
	Written func(E) any
	// Change returns what is written for a value if that is shorter, such as a change of a given object. Meets reports
	// whether a value meets the call. Nil is none.
	Change func(value E, meets func(E) bool) any
	// WithOptions adds the options of a call to what is written for it; nil adds none.
	WithOptions func(value any, call A) any
}

// Assert reports each difference between the expected values of a config and the calls that were made.
func (e Expectation[E, A]) Assert(page words.Page, t *testing.T, expected []E, actual []A) {
	if t != nil {
		t.Helper()
	}
	if e.met(expected, actual) {
		return
	}
	var failures []words.Failure
	if order := e.permutation(expected, actual); order != nil {
		failures = []words.Failure{e.reordered(page, order, expected)}
	} else {
		failures = e.differences(page, expected, actual)
	}
	change := page.List(e.Field, reflect.TypeFor[[]E](), len(expected), e.elements(expected, actual))
	for _, f := range failures {
		page.Add(t, f, change)
	}
}

// met reports whether each call meets its expectation.
func (e Expectation[E, A]) met(expected []E, actual []A) bool {
	return e.unmet(positions(len(expected), len(actual)), expected, actual) == 0
}

// unmet returns how many pairs are failures.
func (e Expectation[E, A]) unmet(pairs []pair, expected []E, actual []A) (n int) {
	for _, p := range pairs {
		if p.want == none || p.call == none || !e.meets(p.want, expected[p.want], actual[p.call]) {
			n++
		}
	}
	return n
}

// pairs returns which expectation is compared with which call. They are compared by position, unless another way has
// fewer failures, or as many if one of the lists is longer.
func (e Expectation[E, A]) pairs(expected []E, actual []A) []pair {
	aligned := align(len(expected), len(actual), func(i, j int) int {
		switch {
		case e.meets(i, expected[i], actual[j]):
			return 2
		case e.Name(expected[i]) == e.Name(e.Found(actual[j])):
			return 1
		}
		return 0
	})
	positional := positions(len(expected), len(actual))
	less := e.unmet(positional, expected, actual) - e.unmet(aligned, expected, actual)
	if less > 0 || less == 0 && len(expected) != len(actual) {
		return aligned
	}
	return positional
}

// differences are the failures of expectations and calls. What is missing or was not expected is one failure: those
// after it are compared with their counterparts.
func (e Expectation[E, A]) differences(page words.Page, expected []E, actual []A) []words.Failure {
	var failures []words.Failure
	next := 0
	for _, p := range e.pairs(expected, actual) {
		if p.want == none {
			failures = append(failures, e.unexpected(page, next, len(expected), len(actual), actual[p.call]))
			continue
		}
		next = p.want + 1
		want := expected[p.want]
		if p.call == none {
			failures = append(failures, e.missing(page, p.want, expected, actual))
			continue
		}
		call := actual[p.call]
		if diff := e.Diff(nil, want, e.observe(want, call)); diff != "" {
			failures = append(failures, e.different(page, p.want, want, call, diff))
		} else if diff := e.optionsDiff(p.want, call); diff != "" {
			failures = append(failures, e.otherOptions(page, p.want, want, call, diff))
		}
	}
	return failures
}

// missing is the failure of an expectation without a call.
func (e Expectation[E, A]) missing(page words.Page, i int, expected []E, actual []A) words.Failure {
	seen := make([]string, len(actual))
	for j, call := range actual {
		seen[j] = e.Name(e.Found(call))
	}
	notObserved := fmt.Sprintf("%s[%d] not observed%s: ", e.Field, i, page.Suffix())
	return words.Failure{
		Headline: notObserved + e.Name(expected[i]),
		Expected: words.Count(len(expected), e.Kind),
		Seen:     strings.TrimSuffix(words.Count(len(actual), e.Kind)+": "+strings.Join(seen, ", "), ": "),
		Details:  strings.TrimSuffix(notObserved, " ") + "\n" + page.Writer().Of(e.write(expected[i])),
	}
}

// different is the failure of an expectation that a call does not meet.
func (e Expectation[E, A]) different(page words.Page, i int, want E, call A, diff string) words.Failure {
	w, at := page.Writer(), fmt.Sprintf("%s[%d]", e.Field, i)
	f := describe(w, diff, func(first *First) { e.Diff(first, want, e.observe(want, call)) })
	f.Headline = fmt.Sprintf("%s differs%s: %s", at, page.Suffix(), e.Name(want))
	f.Details = page.Differs(at+" differs", diff) + words.Hint("To expect it, set "+at+" to:", w, e.literal(call))
	return f
}

// otherOptions is the failure of an expectation that a call meets except for its options.
func (e Expectation[E, A]) otherOptions(page words.Page, i int, want E, call A, diff string) words.Failure {
	at := fmt.Sprintf("%s[%d]", e.Field, i)
	return words.Failure{
		Headline: fmt.Sprintf("%s differs in its options%s: %s", at, page.Suffix(), e.Name(want)),
		Expected: firstLine(diff, "-"), Seen: firstLine(diff, "+"),
		Details: page.Differs(at+" differs in its options", diff) +
			words.Hint("To expect it, set "+at+" to:", page.Writer(), e.literal(call)),
	}
}

// unexpected is the failure of a call without an expectation. Next is the index that its expectation would have.
func (e Expectation[E, A]) unexpected(page words.Page, next, expected, seen int, call A) words.Failure {
	where := e.Field
	if next < expected {
		where = fmt.Sprintf("%s, before [%d]", e.Field, next)
	}
	return words.Failure{
		Headline: fmt.Sprintf("Unexpected %s observed%s: %s", e.Kind, page.Suffix(), e.Name(e.Found(call))),
		Expected: words.Count(expected, e.Kind),
		Seen:     words.Count(seen, e.Kind),
		Details:  words.Hint("To expect it, add to "+where+":", page.Writer(), e.literal(call)),
	}
}

func (e Expectation[E, A]) observe(want E, call A) E {
	if e.Observed != nil {
		return e.Observed(want, call)
	}
	return e.Found(call)
}

func (e Expectation[E, A]) optionsDiff(i int, call A) string {
	if e.Options == nil {
		return ""
	}
	return e.Options(i, call)
}

// meets reports whether a call meets the expectation of an index, options included.
func (e Expectation[E, A]) meets(i int, want E, call A) bool {
	return e.Diff(nil, want, e.observe(want, call)) == "" && e.optionsDiff(i, call) == ""
}

// literal returns what a table has to have for a call.
func (e Expectation[E, A]) literal(call A) any {
	values := []E{e.Found(call)}
	if e.Literals != nil {
		values = e.Literals(call)
	}
	meets := func(value E) bool { return e.Diff(nil, value, e.observe(value, call)) == "" }
	value := matching(values, meets)
	written := e.write(value)
	if e.Change != nil {
		if change := e.Change(value, meets); change != nil {
			written = change
		}
	}
	if e.WithOptions != nil {
		return e.WithOptions(written, call)
	}
	return written
}

// matching returns the first value that matches, else the last one.
func matching[T any](values []T, matches func(T) bool) T {
	for _, value := range values {
		if matches(value) {
			return value
		}
	}
	return values[len(values)-1]
}

func (e Expectation[E, A]) write(value E) any {
	if e.Written != nil {
		return e.Written(value)
	}
	return value
}

// elements returns what the list of expectations would have to be. An expectation that is met stays.
func (e Expectation[E, A]) elements(expected []E, actual []A) []words.Element {
	elements := make([]words.Element, len(actual))
	next := 0
	for i, call := range actual {
		elements[i] = words.Element{Keeps: -1, Value: e.literal(call)}
		for j := next; j < len(expected); j++ {
			if e.meets(j, expected[j], call) {
				elements[i].Keeps, next = j, j+1
				break
			}
		}
	}
	return elements
}

// permutation returns, for each call, the index of the expectation that it meets, if each meets another one; else nil.
// An expectation that several calls meet is given to the first of them.
func (e Expectation[E, A]) permutation(expected []E, actual []A) []int {
	if len(expected) != len(actual) {
		return nil
	}
	order := make([]int, len(actual))
	taken := make([]bool, len(expected))
	for n, call := range actual {
		order[n] = -1
		for i, want := range expected {
			if !taken[i] && e.meets(i, want, call) {
				order[n], taken[i] = i, true
				break
			}
		}
		if order[n] < 0 {
			return nil
		}
	}
	return order
}

// reordered is the failure of expectations that the calls meet in another order.
func (e Expectation[E, A]) reordered(page words.Page, order []int, expected []E) words.Failure {
	first, last := 0, len(order)
	for first < last && order[first] == first {
		first++
	}
	for last > first && order[last-1] == last-1 {
		last--
	}
	var wanted, seen []string
	for i := first; i < last; i++ {
		wanted = append(wanted, fmt.Sprintf("[%d] %s", i, e.Name(expected[i])))
		seen = append(seen, fmt.Sprintf("[%d] %s", order[i], e.Name(expected[order[i]])))
	}
	return words.Failure{
		Headline: fmt.Sprintf("%s has the same calls in another order%s", e.Field, page.Suffix()),
		Expected: strings.Join(wanted, ", "),
		Seen:     strings.Join(seen, ", "),
	}
}
