package simulation

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

var budget = flag.Duration("simulation.budget", time.Minute,
	"how long, in real time, RunFaults begins to try faults; 0 is without an end")

const (
	// reported is how long a test says nothing while it tries faults.
	reported = 10 * time.Second
	// reserve is how long before the deadline of the test binary no fault is begun: those that run need time.
	reserve = 10 * time.Second
)

// progress is how far a test is with its faults.
type progress struct {
	test  string
	tried []Fault
	began time.Time
	// until is when no fault is begun any more; zero is never.
	until time.Time

	mu sync.Mutex
	// ended is how many faults were tried, left how many were not, for lack of time, and said when it was told last.
	ended, left, failed int
	said                time.Time
}

// newProgress begins to try faults out of a number of them. How far that came is said when the test ends.
func newProgress(t *testing.T, of int, tried []Fault) *progress {
	p := &progress{test: t.Name(), tried: tried, began: time.Now(), said: time.Now()}
	if *budget > 0 {
		p.until = p.began.Add(*budget)
	}
	if deadline, ok := t.Deadline(); ok && (p.until.IsZero() || deadline.Add(-reserve).Before(p.until)) {
		p.until = deadline.Add(-reserve)
	}
	t.Cleanup(func() {
		text := fmt.Sprintf("%d of %d faults", p.ended, of)
		if p.left > 0 {
			const more = ": there was no time for %d more: set -simulation.budget and -timeout to try them"
			text += fmt.Sprintf(more, p.left)
		}
		t.Log(text)
	})
	return p
}

// begin skips the test of a fault if there is no time for it.
func (p *progress) begin(t *testing.T) {
	t.Helper()
	if !p.until.IsZero() && time.Now().After(p.until) {
		p.mu.Lock()
		p.left++
		p.mu.Unlock()
		t.SkipNow()
	}
}

// end counts a fault, and says on the standard error output how far the test is if it has not for a while.
func (p *progress) end(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Failed() {
		p.failed++
	}
	if !t.Skipped() {
		p.ended++
	}
	if time.Since(p.said) < reported {
		return
	}
	p.said = time.Now()
	fmt.Fprintf(os.Stderr, "%s: %d of %d faults, of which %d fail, in %v\n",
		p.test, p.ended, len(p.tried), p.failed, time.Since(p.began).Round(time.Second))
}
