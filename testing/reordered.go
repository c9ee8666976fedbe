package testing

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/testing/internal/words"
)

// permutation returns, for each call, the index of the expectation that it meets, if each meets another one; else nil.
// An expectation that several calls meet is given to the first of them.
func (e expectation[E, A]) permutation(c *ExpectConfig, expected []E, actual []A) []int {
	if len(expected) != len(actual) {
		return nil
	}
	order := make([]int, len(actual))
	taken := make([]bool, len(expected))
	for n, call := range actual {
		order[n] = -1
		for i, want := range expected {
			if !taken[i] && e.meets(c, i, want, call) {
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

// meets reports whether a call meets the expectation of an index, options included.
func (e expectation[E, A]) meets(c *ExpectConfig, i int, want E, call A) bool {
	return e.diff(c.differ(), want, e.observe(want, call)) == "" && (e.options == nil || e.options(i, call) == "")
}

// reordered is the failure of expectations that the calls meet in another order.
func (e expectation[E, A]) reordered(c *ExpectConfig, order []int, expected []E) words.Failure {
	first, last := 0, len(order)
	for first < last && order[first] == first {
		first++
	}
	for last > first && order[last-1] == last-1 {
		last--
	}
	var wanted, seen []string
	for i := first; i < last; i++ {
		wanted = append(wanted, fmt.Sprintf("[%d] %s", i, e.name(expected[i])))
		seen = append(seen, fmt.Sprintf("[%d] %s", order[i], e.name(expected[order[i]])))
	}
	return words.Failure{
		Headline: fmt.Sprintf("%s has the same calls in another order%s", e.field, c.page().Suffix()),
		Expected: strings.Join(wanted, ", "),
		Seen:     strings.Join(seen, ", "),
	}
}
