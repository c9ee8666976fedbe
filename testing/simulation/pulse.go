package simulation

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// reported is how long a test says nothing while it tells stories.
const reported = 10 * time.Second

// pulse says on the standard error output how far a test is. The methods of nil do nothing.
type pulse struct {
	test  string
	began time.Time

	mu sync.Mutex
	// said is when something was said last.
	said time.Time
}

func newPulse(t *testing.T) *pulse {
	return &pulse{test: t.Name(), began: time.Now(), said: time.Now()}
}

// say says how far the test is if nothing was said for a while.
func (p *pulse) say(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.said) < reported {
		return
	}
	p.said = time.Now()
	took := time.Since(p.began).Round(time.Second)
	fmt.Fprintf(os.Stderr, "%s: %s, in %v\n", p.test, fmt.Sprintf(format, args...), took)
}

// lastMoment is when no further story may begin so that a test can say what it has found, if there is a time until then
// and the test binary has a deadline. Zero is never.
func lastMoment(t *testing.T, limit time.Duration) (last time.Time) {
	if limit > 0 {
		last = time.Now().Add(limit)
	}
	if deadline, ok := t.Deadline(); ok && (last.IsZero() || deadline.Add(-reserve).Before(last)) {
		last = deadline.Add(-reserve)
	}
	return last
}

// isOver reports whether a last moment is over.
func isOver(last time.Time) bool { return !last.IsZero() && time.Now().After(last) }
