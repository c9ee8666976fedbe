package simulation

import (
	"runtime"
	"slices"
	"strings"
)

// stack is what a goroutine does. Its first line has the state and the bubble of the goroutine, such as
// "goroutine 42 [chan receive (durable), synctest bubble 7]:".
type stack string

// stacks returns the stacks of the goroutines in a bubble.
func stacks(bubble string) []stack {
	buffer := make([]byte, 1<<20)
	n := runtime.Stack(buffer, true)
	for n == len(buffer) && n < 64<<20 {
		buffer = make([]byte, 2*n)
		n = runtime.Stack(buffer, true)
	}
	var found []stack
	for text := range strings.SplitSeq(string(buffer[:n]), "\n\n") {
		if s := stack(text); strings.Contains(s.header(), "synctest bubble "+bubble+"]") {
			found = append(found, s)
		}
	}
	return found
}

func (s stack) header() string {
	first, _, _ := strings.Cut(string(s), "\n")
	return first
}

// holds reports whether the goroutine holds up virtual time: it does not wait for something in its bubble.
func (s stack) holds() bool { return !strings.Contains(s.header(), "(durable)") }

// runs reports whether the goroutine waits for nothing.
func (s stack) runs() bool {
	return strings.Contains(s.header(), "[runnable") || strings.Contains(s.header(), "[running")
}

// ours reports whether the goroutine is one that a simulation waits for: the story, the start of a process, or the end
// of the world.
func (s stack) ours() bool {
	return s.in("recorder).run.func") || s.in("replica).setUp(") || s.in("World).end(")
}

// in reports whether the goroutine is in a function of this package.
func (s stack) in(function string) bool {
	return strings.Contains(string(s), "espalier/testing/simulation.(*"+function)
}

// forEver reports whether goroutines of a bubble wait for nothing that time brings: the story does not sleep, and
// nobody lets time pass in it.
func forEver(all []stack) bool {
	return !slices.ContainsFunc(all, func(s stack) bool {
		return s.in("World).sleep(") || s.in("recorder).run.func") && strings.Contains(s.header(), "[sleep")
	})
}
