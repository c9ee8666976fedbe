package shards_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// scripts are stories. In some, a law does not hold for a shard that lacks something.
var scripts = map[string]struct {
	play func(s *story)
	// lacks is what the shard lacks, and breaks the law that does not hold then.
	lacks  flaw
	breaks string
}{
	"processes stand still in the middle of their work": {standStill, unguarded, leaseLaw},
	"Widgets move as shards join and leave":             {joinAndLeave, filtered, creationLaw},
	"Widgets are deleted as they move":                  {deleteAsTheyMove, flawless, ""},
}

// standStill has each process stand still until its Lease is taken, while it works.
func standStill(s *story) {
	for _, replica := range replicas {
		for range 6 {
			s.make()
		}
		s.Pass(time.Duration(s.Int64N(int64(4 * time.Second))))
		s.Freeze(replica)
		s.Pass(2 * time.Minute)
		s.Resume(replica)
		s.Pass(time.Minute)
	}
}

// joinAndLeave has a shard leave and join again, while others work.
func joinAndLeave(s *story) {
	for range 8 {
		s.make()
	}
	s.Pass(time.Minute)
	for range 4 {
		replica := s.replica()
		s.Terminate(replica)
		s.change()
		s.Pass(time.Minute)
		s.Start(replica)
		s.change()
		s.Pass(time.Minute)
	}
}

// deleteAsTheyMove has Widgets deleted when a shard leaves and when it is back.
func deleteAsTheyMove(s *story) {
	for _, replica := range replicas {
		for range 8 {
			s.make()
		}
		s.Pass(time.Minute)
		s.Terminate(replica)
		for range 3 {
			s.remove()
		}
		s.Pass(time.Minute)
		s.Start(replica)
		s.Pass(s.joined())
		for range 3 {
			s.remove()
		}
		s.Pass(time.Minute)
	}
}

// joined returns about how long it takes until a shard is one of the ring.
func (s *story) joined() time.Duration { return time.Duration(s.Int64N(int64(20 * time.Second))) }

// slow returns options with a latency in which what is seen in one watch may be seen in another long before.
func slow(seed uint64) simulation.Options {
	options := cluster()
	options.Plan = simulation.Plan{Seed: seed, Latency: underWay, Actors: replicas}
	return options
}

// The laws hold while Widgets move.
func TestMoves(t *testing.T) {
	for name, script := range scripts {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				t.Parallel()
				simulation.Run(t, slow(seed), func(w *simulation.World) {
					s := begin(w, seed)
					script.play(s)
					s.end()
				})
			})
		}
	}
}

// seen are the names of laws that did not hold.
type seen struct {
	mu    sync.Mutex
	names []string
}

var broken simulation.External[seen]

// noted returns a law that takes down when it does not hold, and lets the story go on.
func noted(law simulation.Invariant) simulation.Invariant {
	check := law.Check
	law.Check = func(w simulation.Write, state simulation.State) error {
		if check(w, state) != nil {
			s := broken.In(context.Background())
			s.mu.Lock()
			defer s.mu.Unlock()
			s.names = append(s.names, law.Name)
		}
		return nil
	}
	return law
}

// The laws can be broken: a shard that lacks something breaks them, for some seed.
func TestFlaws(t *testing.T) {
	for name, script := range scripts {
		if script.lacks == flawless {
			continue
		}
		t.Run(string(script.lacks)+"/"+name, func(t *testing.T) {
			t.Parallel()
			const tries = 8
			for seed := range uint64(tries) {
				options := slow(seed)
				options.Prepare = prepare(script.lacks)
				for i, law := range options.Always {
					options.Always[i] = noted(law)
				}
				found := false
				simulation.Run(t, options, func(w *simulation.World) {
					script.play(begin(w, seed))
					s := broken.Of(w)
					s.mu.Lock()
					defer s.mu.Unlock()
					found = slices.Contains(s.names, script.breaks)
				})
				if found || t.Failed() {
					t.Logf("seed %d breaks it", seed)
					return
				}
			}
			t.Errorf("%q holds for %d seeds, want that one breaks it", script.breaks, tries)
		})
	}
}
