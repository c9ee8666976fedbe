package simulation

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var budget = flag.Duration("simulation.budget", time.Minute,
	"how long, in real time, RunFaults begins to try faults; 0 is without an end")

// reserve is how long before the deadline of the test binary no story is begun: those that run need time.
const reserve = 10 * time.Second

// progress is how far a test is with its faults.
type progress struct {
	*pulse
	tried []counted
	// until is when no fault is begun any more; zero is never.
	until time.Time

	mu sync.Mutex
	// ended is how many faults were tried, and late are those for which there was no time. nothing is how many showed
	// nothing.
	ended, nothing, failed int
	late                   []counted
}

// newProgress begins to try the first of all faults, up to a number; 0 is all of them. How far that came, and what was
// left out, is said when the test ends.
func newProgress(t *testing.T, all []counted, most int) *progress {
	tried := all
	if most > 0 && most < len(all) {
		tried = all[:most]
	}
	p := &progress{pulse: newPulse(t), tried: tried, until: lastMoment(t, *budget)}
	t.Cleanup(func() {
		text := fmt.Sprintf("%d of %d faults", p.ended, len(all))
		if p.nothing > 0 {
			text += fmt.Sprintf("; %d more showed nothing: their subtests are skipped and say why", p.nothing)
		}
		if left := all[len(tried):]; len(left) > 0 {
			text += "; left out: " + uncovered(all, left) + ": set -simulation.faults=0 to try them"
		}
		if len(p.late) > 0 {
			late := uncovered(all, p.late)
			text += "; there was no time for: " + late + ": set -simulation.budget and -timeout to try them"
		}
		t.Log(text)
	})
	return p
}

// mostNamed is how many calls are named at most.
const mostNamed = 10

// uncovered names the calls of faults that were not tried, those first of which the most was not.
func uncovered(all, left []counted) string {
	of, lacks := map[string]int{}, map[string]int{}
	for _, c := range all {
		of[c.as]++
	}
	for _, c := range left {
		lacks[c.as]++
	}
	calls := slices.SortedFunc(maps.Keys(lacks), func(a, b string) int {
		return cmp.Or(cmp.Compare(lacks[b]*of[a], lacks[a]*of[b]), cmp.Compare(a, b))
	})
	var texts []string
	for _, call := range calls[:min(len(calls), mostNamed)] {
		texts = append(texts, fmt.Sprintf("%d of %d of %s", lacks[call], of[call], call))
	}
	if more := len(calls) - mostNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("those of %d more calls", more))
	}
	return strings.Join(texts, ", ")
}

// begin skips the test of a fault if there is no time for it.
func (p *progress) begin(t *testing.T, c counted) {
	t.Helper()
	if isOver(p.until) {
		p.mu.Lock()
		p.late = append(p.late, c)
		p.mu.Unlock()
		t.SkipNow()
	}
}

// showsNothing skips the test of a fault that neither passes nor fails.
func (p *progress) showsNothing(t *testing.T, why string) {
	t.Helper()
	p.mu.Lock()
	p.nothing++
	p.mu.Unlock()
	t.Skip(why)
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
	p.say("%d of %d faults, of which %d fail", p.ended, len(p.tried), p.failed)
}
