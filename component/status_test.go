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
		t.Errorf("a roll-out that did not become ready at once began %v, not %v", timer.since, start)
	}
	if later := timer.tick("a", false, false, start.Add(time.Minute)); later != timer {
		t.Errorf("the timer moved: %v", later)
	}
	if changed := timer.tick("b", false, false, start.Add(time.Minute)); changed.since != start.Add(time.Minute) {
		t.Errorf("another roll-out began %v", changed.since)
	}
	ready := timer.tick("a", true, false, start.Add(time.Minute))
	if !ready.since.IsZero() || ready.digest != "a" {
		t.Errorf("what is ready is timed: %v", ready)
	}
	if unready := ready.tick("a", false, false, start.Add(time.Hour)); unready.since != start.Add(time.Hour) {
		t.Errorf("what was ready is timed from %v", unready.since)
	}
	if deleting := timer.tick("a", false, true, start); deleting != (rolloutTimer{}) {
		t.Errorf("a deletion is timed: %v", deleting)
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
			t.Errorf("%v is not 1 to 5 percent more than a minute", got)
		}
		if again := jittered(time.Minute, fmt.Sprint(i)); again != got {
			t.Errorf("%v and %v for the same seed", got, again)
		}
		seen[got] = true
	}
	if len(seen) < 3 {
		t.Errorf("there are only %d different delays", len(seen))
	}
	if jittered(0, "x") != 0 {
		t.Error("no delay became one")
	}
}
