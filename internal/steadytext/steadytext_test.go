package steadytext_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/steadytext"
)

var start = time.Date(2024, time.May, 17, 8, 30, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	var text steadytext.Text
	shown := ""
	for _, step := range []struct {
		after             time.Duration
		changes           bool
		text, want        string
		again             time.Duration
		nothingToRemember bool
	}{
		{0, true, "port 1", "port 1", 0, false},
		{time.Second, false, "port 2", "port 2", 0, false},
		{2 * time.Second, true, "port 3", "port 3", 0, false},
		{3 * time.Second, false, "port 0", "port 0", 0, false},
		{3 * time.Second, false, "port 1", "port 1", 0, false},
		{3 * time.Second, false, "port 4", "port 4", 0, false},
		{62 * time.Second, false, "port 5", "port 4", time.Second, false},
		{63 * time.Second, false, "port 6", "port 6", 0, false},
		{64 * time.Second, false, "port 7", "port 6", 119 * time.Second, false},
		{65 * time.Second, false, "port 6", "port 6", 0, false},
		{66 * time.Second, false, "port 8", "port 6", 57 * time.Second, false},
		{124 * time.Second, false, "port 6", "port 6", 0, true},
	} {
		now, previous := start.Add(step.after), &shown
		if step.changes {
			previous = nil
		}
		got, again := text.Next(previous, step.text, now)
		if got != step.want || again != step.again {
			t.Errorf("after %v the text is %q, again after %v; want %q, %v", step.after, got, again, step.want, step.again)
		}
		if empty := text.Evict(now); empty != step.nothingToRemember {
			t.Errorf("after %v Evict returns %t, want %t", step.after, empty, step.nothingToRemember)
		}
		shown = got
	}
}

// A text that is another one in each request is shown less and less often, and each time by the request that was asked
// for.
func TestDelays(t *testing.T) {
	var text steadytext.Text
	var delays []time.Duration
	now := start
	shown, _ := text.Next(nil, "0", now)
	for i := 1; i < 15; i++ {
		next, again := text.Next(&shown, fmt.Sprint(i), now)
		if again > 0 {
			delays = append(delays, again)
		}
		if text.Evict(now) {
			t.Errorf("after %v nothing is remembered, want the delay", now.Sub(start))
		}
		shown, now = next, now.Add(again)
	}
	if got, want := fmt.Sprint(delays), "[1m0s 2m0s 4m0s 8m0s 10m0s 10m0s]"; got != want {
		t.Errorf("the delays are %s, want %s", got, want)
	}
}
