package component

import (
	"fmt"
	"testing"
	"time"
)

// The time of errors counts, and a component that was ready gets a fresh timer when it is not any more.
func TestComponentClock(t *testing.T) {
	start := time.Unix(1000, 0)
	timer := rolloutTimer{}.tick("a", false, false, start)
	if timer.since != start {
		t.Errorf("a roll-out that did not become ready at once began %v, want %v", timer.since, start)
	}
	if later := timer.tick("a", false, false, start.Add(time.Minute)); later != timer {
		t.Errorf("the timer is %v, want it still %v", later, timer)
	}
	if changed := timer.tick("b", false, false, start.Add(time.Minute)); changed.since != start.Add(time.Minute) {
		t.Errorf("another roll-out began %v, want %v", changed.since, start.Add(time.Minute))
	}
	ready := timer.tick("a", true, false, start.Add(time.Minute))
	if !ready.since.IsZero() || ready.digest != "a" {
		t.Errorf("the timer of what is ready is %v, want no time and the digest a", ready)
	}
	if unready := ready.tick("a", false, false, start.Add(time.Hour)); unready.since != start.Add(time.Hour) {
		t.Errorf("what was ready is timed from %v, want %v", unready.since, start.Add(time.Hour))
	}
	if deleting := timer.tick("a", false, true, start); deleting != (rolloutTimer{}) {
		t.Errorf("the timer of a deletion is %v, want none", deleting)
	}
}

func TestComponentBackoff(t *testing.T) {
	longest := 10 * time.Second
	for tries := range 60 {
		want := longest
		switch {
		case tries < 5:
			want = 50 * time.Millisecond << tries
		case tries < 20:
			want = time.Second
		case tries < 50:
			want = 2 * time.Second
		}
		if got := backoffDelay(tries, longest); got != want {
			t.Errorf("after %d tries: %v, want %v", tries, got, want)
		}
	}
	var s resourceState
	for i, step := range []struct {
		reason  string
		changed bool
		want    int
	}{{"a", false, 0}, {"a", false, 1}, {"a", false, 2}, {"a", true, 0}, {"a", false, 1}, {"b", false, 0}, {"b", false, 1}} {
		if got := s.countWait(step.reason, step.changed); got != step.want {
			t.Errorf("step %d: %d tries, want %d", i, got, step.want)
		}
	}
}

func TestJittered(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 50 {
		got := jittered(time.Minute, fmt.Sprint(i))
		if got < time.Minute*101/100 || got > time.Minute*105/100 {
			t.Errorf("the delay is %v, want 1 to 5 percent more than a minute", got)
		}
		if again := jittered(time.Minute, fmt.Sprint(i)); again != got {
			t.Errorf("the delays are %v and %v, want the same for the same seed", got, again)
		}
		seen[got] = true
	}
	if len(seen) < 3 {
		t.Errorf("there are %d different delays, want at least 3", len(seen))
	}
	if jittered(0, "x") != 0 {
		t.Errorf("no delay became %v, want 0", jittered(0, "x"))
	}
}
