package metrics

import (
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/tracker"

	"github.com/prometheus/client_golang/prometheus"
)

// sizes are numbers that are read when they are asked for.
type sizes struct {
	watches, cached, watchers, references *prometheus.Desc

	mu       sync.Mutex
	trackers map[tracker.Sizer]struct{}
	watched  []sized
}

// sized is what components watch in a cluster: component.Watching, which is known by its method, see [rollout].
type sized interface {
	Size() (types, objects int, running bool)
}

var _ prometheus.Collector = (*sizes)(nil)

func newSizes(definition) *sizes {
	return &sizes{
		watches: componentWatches.desc(), cached: componentCached.desc(),
		watchers: trackerWatchers.desc(), references: trackerReferences.desc(),
		trackers: map[tracker.Sizer]struct{}{},
	}
}

// addTracker adds a tracker, if it has a size. Views of one tracker, for controllers and clusters, are the same.
func (s *sizes) addTracker(of tracker.Tracker) {
	if of == nil {
		return
	}
	sizer, ok := tracker.InCluster(tracker.ForController(of, ""), nil).(tracker.Sizer)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trackers[sizer] = struct{}{}
}

// addWatched adds what components watch in a cluster, until they do not watch it any more.
func (s *sizes) addWatched(watched sized) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropStopped()
	s.watched = append(s.watched, watched)
}

func (s *sizes) dropStopped() {
	s.watched = slices.DeleteFunc(s.watched, func(watched sized) bool {
		_, _, running := watched.Size()
		return !running
	})
}

// Describe implements [prometheus.Collector].
func (s *sizes) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.watches, s.cached, s.watchers, s.references} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (s *sizes) Collect(metrics chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value int) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	if s.dropStopped(); len(s.watched) > 0 {
		types, objects := 0, 0
		for _, watched := range s.watched {
			t, o, _ := watched.Size()
			types, objects = types+t, objects+o
		}
		gauge(s.watches, types)
		gauge(s.cached, objects)
	}
	if len(s.trackers) > 0 {
		var sum tracker.Size
		for sizer := range s.trackers {
			size := sizer.Size()
			sum.Watchers, sum.References = sum.Watchers+size.Watchers, sum.References+size.References
		}
		gauge(s.watchers, sum.Watchers)
		gauge(s.references, sum.References)
	}
}
