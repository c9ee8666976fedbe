package pace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// play writes at these times, and waits as long as it has to. It returns when the writes are made.
func play(asked []time.Duration) (made []string, last Pace, end time.Time) {
	start := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, at := range asked {
		if now := start.Add(at); now.After(end) {
			end = now
		}
		if wait := last.Wait(end); wait > 0 {
			last, end = last.Held(), end.Add(wait)
		}
		last = last.Written(end, 1)
		made = append(made, end.Sub(start).String())
	}
	return made, last, end
}

func every(gap time.Duration, n int) (times []time.Duration) {
	for i := range n {
		times = append(times, time.Duration(i)*gap)
	}
	return times
}

func TestPace(t *testing.T) {
	for name, test := range map[string]struct {
		asked []time.Duration
		want  string
	}{
		"none":                    {},
		"five at once":            {every(0, 5), "0s 0s 0s 0s 0s"},
		"the sixth waits":         {every(0, 6), "0s 0s 0s 0s 0s 10s"},
		"the wait doubles":        {every(0, 11), "0s 0s 0s 0s 0s 10s 30s 1m10s 2m30s 5m10s 7m50s"},
		"six in a minute":         {every(12*time.Second, 6), "0s 12s 24s 36s 48s 1m0s"},
		"six in half a minute":    {every(6*time.Second, 6), "0s 6s 12s 18s 24s 34s"},
		"five of five minutes":    {append(every(70*time.Second, 5), 300*time.Second), "0s 1m10s 2m20s 3m30s 4m40s 5m0s"},
		"a late one does not":     {append(every(0, 6), 31*time.Second), "0s 0s 0s 0s 0s 10s 31s"},
		"five minutes later":      {append(every(0, 7), slices.Repeat([]time.Duration{330 * time.Second}, 6)...), "0s 0s 0s 0s 0s 10s 30s 5m30s 5m30s 5m30s 5m30s 5m30s 5m40s"},
		"less than five minutes":  {append(every(0, 7), 320*time.Second, 320*time.Second), "0s 0s 0s 0s 0s 10s 30s 5m20s 6m0s"},
		"a little early, at last": {append(every(0, 5), 9*time.Second), "0s 0s 0s 0s 0s 9s"},
	} {
		t.Run(name, func(t *testing.T) {
			if made, _, _ := play(test.asked); strings.Join(made, " ") != test.want {
				t.Errorf("the writes are made at %v, want %s", made, test.want)
			}
		})
	}
}

// What writes every ten seconds, more or less, is never held.
func TestSteadyWritesAreNeverHeld(t *testing.T) {
	var asked []time.Duration
	for i := range 1000 {
		asked = append(asked, time.Duration(i)*10*time.Second+time.Duration(i%7)*100*time.Millisecond)
	}
	made, last, now := play(asked)
	for i, at := range made {
		if at != asked[i].String() {
			t.Fatalf("write %d is made at %s, want %s", i, at, asked[i])
		}
	}
	if left := last.Limited(now); left != 0 {
		t.Errorf("it is limited for %s, want that it is not", left)
	}
}

func TestLimited(t *testing.T) {
	for _, test := range []struct {
		writes int
		held   bool
		after  time.Duration
		want   time.Duration
	}{
		{writes: 5},
		{writes: 5, held: true, want: 10 * time.Second},
		{writes: 5, held: true, after: 10 * time.Second},
		{writes: 6, want: 20 * time.Second},
		{writes: 6, after: 5 * time.Second, want: 15 * time.Second},
		{writes: 6, after: 20 * time.Second},
		{writes: 11, after: 159 * time.Second, want: time.Second},
		{writes: 11, after: time.Hour},
	} {
		t.Run(fmt.Sprintf("%d writes, held: %t, after %s", test.writes, test.held, test.after), func(t *testing.T) {
			_, p, now := play(every(0, test.writes))
			if test.held {
				p = p.Held()
			}
			if got := p.Limited(now.Add(test.after)); got != test.want {
				t.Errorf("it is limited for %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatCounts(t *testing.T) {
	now := time.Date(2025, 2, 3, 4, 5, 6, 0, time.UTC)
	for times, want := range map[int]time.Duration{0: 0, 1: 0, Recreation: 10 * time.Second} {
		before := Pace{}.Written(now, 0)
		if got := before.Written(now, times).Wait(now); got != want {
			t.Errorf("after what counts as %d, a write waits for %s, want %s", times, got, want)
		}
		if before.Wait(now) != 0 || len(before.counted) != 0 {
			t.Error("Written changed the pace before")
		}
	}
}
