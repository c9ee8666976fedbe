package metrics

import (
	"sync"

	"github.com/espalier-dev/espalier/internal/shard"

	"github.com/prometheus/client_golang/prometheus"
)

// shards are numbers of the shards that this process is, which are read when they are asked for. A process that does
// not hold its Lease has them too.
type shards struct {
	held, arrivals, drains, refused *prometheus.Desc

	mu    sync.Mutex
	known map[*shard.Shard]struct{}
}

var _ prometheus.Collector = (*shards)(nil)

func newShards(definition) *shards {
	return &shards{
		held: shardHeld.desc(), arrivals: shardArrivals.desc(), drains: shardDrains.desc(),
		refused: shardRefusedWrites.desc(), known: map[*shard.Shard]struct{}{},
	}
}

// add adds a shard, unless it is known.
func (s *shards) add(of *shard.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[of] = struct{}{}
}

// Describe implements [prometheus.Collector].
func (s *shards) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.held, s.arrivals, s.drains, s.refused} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (s *shards) Collect(metrics chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A process is one shard of a ring. Shards of tests may share a registry.
	byRing := map[string]shard.Counts{}
	for of := range s.known {
		sum, counts := byRing[of.Ring()], shard.CountsOf(of)
		byRing[of.Ring()] = shard.Counts{
			Held:    sum.Held || counts.Held,
			Arrived: sum.Arrived + counts.Arrived, GivenBack: sum.GivenBack + counts.GivenBack,
			Refused: sum.Refused + counts.Refused,
		}
	}
	for ring, counts := range byRing {
		held := 0.0
		if counts.Held {
			held = 1
		}
		counter := func(desc *prometheus.Desc, value int64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), ring)
		}
		metrics <- prometheus.MustNewConstMetric(s.held, prometheus.GaugeValue, held, ring)
		counter(s.arrivals, counts.Arrived)
		counter(s.drains, counts.GivenBack)
		counter(s.refused, counts.Refused)
	}
}
