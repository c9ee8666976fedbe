package shards_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// scripts are stories of moves.
var scripts = map[string]func(s *story){
	"processes stand still in the middle of their work": (*story).standStill,
	"Widgets move as shards join and leave":             (*story).joinAndLeave,
	"Widgets are deleted as they move":                  (*story).deleteAsTheyMove,
	"Widgets are deleted as their process stands still": (*story).deleteAsItStandsStill,
}

// standStill has each process stand still until its Lease is taken, while it works.
func (s *story) standStill() {
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

// deleteAsItStandsStill has Widgets deleted by other processes while one stands still in the middle of its work for them.
func (s *story) deleteAsItStandsStill() {
	for _, replica := range replicas {
		for range 6 {
			s.make()
		}
		s.Pass(time.Duration(s.Int64N(int64(4 * time.Second))))
		s.Freeze(replica)
		s.Pass(2 * time.Minute)
		for len(s.widgets) > 0 {
			s.remove()
		}
		s.Pass(time.Minute)
		s.Resume(replica)
		s.Pass(time.Minute)
	}
}

// joinAndLeave has a shard leave and join again, while others work.
func (s *story) joinAndLeave() {
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
func (s *story) deleteAsTheyMove() {
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
					script(s)
					s.end()
				})
			})
		}
	}
}
