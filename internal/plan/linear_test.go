package plan_test

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/plan"
)

// TestG03Linear: eight times as many objects take about eight times as long, and not 64 times (pitfall G-03).
func TestG03Linear(t *testing.T) {
	// The shortest of several runs is the one that nothing else interrupted.
	took := func(n int) time.Duration {
		in := unchanged(n)
		shortest := time.Hour
		for range 5 {
			start := time.Now()
			if p := plan.Make(in); !p.Done {
				t.Fatal(p)
			}
			shortest = min(shortest, time.Since(start))
		}
		return shortest
	}
	few, many := took(2_000), took(16_000)
	if many > 30*few {
		t.Errorf("2000 objects take %v, and 16000 take %v", few, many)
	}
}
