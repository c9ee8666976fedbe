package plan

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/random"
)

// source returns what is random about a call. Each use has its own source, so that no draw depends on another.
func (p Plan) source(use string, c fault.Call) *rand.Rand {
	return random.Source(p.Seed, use, c.Actor, c.Verb, c.Path, strconv.Itoa(c.N))
}

// octaves is how many powers of two a draw covers.
const octaves = 10

// draw returns a time up to the longest. It computes with integers, which give the same on each processor.
func draw(r *rand.Rand, longest time.Duration) time.Duration {
	if longest <= 0 {
		return 0
	}
	most := max(longest>>r.IntN(octaves), 1)
	least := most / 2
	return least + 1 + time.Duration(r.Int64N(int64(most-least)))
}
