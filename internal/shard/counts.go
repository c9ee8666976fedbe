package shard

import "sync/atomic"

// Counts are what a shard has counted since the process began, and whether it holds its Lease now.
type Counts struct {
	// Held reports whether the Lease is held.
	Held bool
	// Arrived is how many resources became the shard's, and GivenBack how many of them it gave back since the ring had
	// asked for them.
	Arrived, GivenBack int64
	// Refused is how many writes were not sent since the Lease was not held.
	Refused int64
}

// counters count for [CountsOf].
type counters struct{ arrived, givenBack, refused atomic.Int64 }

// CountsOf returns what a shard has counted.
func CountsOf(s *Shard) Counts {
	return Counts{
		Held: s.guard.heldNow() == nil, Arrived: s.counters.arrived.Load(), GivenBack: s.counters.givenBack.Load(),
		Refused: s.counters.refused.Load(),
	}
}

// CountGivenBack notes that the shard gave a resource back.
func CountGivenBack(s *Shard) { s.counters.givenBack.Add(1) }
