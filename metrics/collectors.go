package metrics

import (
	"errors"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/tracker"

	"github.com/prometheus/client_golang/prometheus"
)

// collectors are the metrics. Observers of one registry share them.
type collectors struct {
	nodeDuration, componentRollout *prometheus.HistogramVec

	nodeOutcomes, requestCauses, writes, writesSaved, writesHeld, cacheLags, conditionTransitions *prometheus.CounterVec

	resources, conditions, resourceCondition         *prometheus.GaugeVec
	components, componentObjects, componentObstacles *prometheus.GaugeVec
	features, resourceFeature                        *prometheus.GaugeVec
	trackers                                         *trackers
}

func newCollectors(registerer prometheus.Registerer) (*collectors, error) {
	r := &registration{registerer: registerer}
	c := &collectors{
		nodeDuration:         shared(r, nodeDuration, definition.histogram),
		nodeOutcomes:         shared(r, nodeOutcomes, definition.counter),
		requestCauses:        shared(r, requestCauses, definition.counter),
		writes:               shared(r, writes, definition.counter),
		writesSaved:          shared(r, writesSaved, definition.counter),
		writesHeld:           shared(r, writesHeld, definition.counter),
		cacheLags:            shared(r, cacheLags, definition.counter),
		resources:            shared(r, resources, definition.gauge),
		conditions:           shared(r, conditions, definition.gauge),
		conditionTransitions: shared(r, conditionTransitions, definition.counter),
		resourceCondition:    shared(r, resourceCondition, definition.gauge),
		components:           shared(r, components, definition.gauge),
		componentObjects:     shared(r, componentObjects, definition.gauge),
		componentObstacles:   shared(r, componentObstacles, definition.gauge),
		componentRollout:     shared(r, componentRollout, definition.histogram),
		features:             shared(r, features, definition.gauge),
		resourceFeature:      shared(r, resourceFeature, definition.gauge),
		trackers:             shared(r, trackerWatchers, newTrackers),
	}
	return c, r.err
}

// registration keeps the first error.
type registration struct {
	registerer prometheus.Registerer
	err        error
}

// shared registers a collector, or returns the one that is registered already.
func shared[C prometheus.Collector](r *registration, d definition, collector func(definition) C) C {
	made := collector(d)
	err := r.registerer.Register(made)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := known.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("unable to register the metric %s: %w", d.name, err)
	}
	return made
}

// trackers has the sizes of trackers, which are read when they are asked for.
type trackers struct {
	watchers, references *prometheus.Desc

	mu  sync.Mutex
	all map[tracker.Sizer]struct{}
}

var _ prometheus.Collector = (*trackers)(nil)

func newTrackers(definition) *trackers {
	return &trackers{
		watchers: trackerWatchers.desc(), references: trackerReferences.desc(), all: map[tracker.Sizer]struct{}{},
	}
}

// add adds a tracker, if it has a size. Views of one tracker, for controllers and clusters, are the same.
func (t *trackers) add(of tracker.Tracker) {
	if of == nil {
		return
	}
	sizer, ok := tracker.InCluster(tracker.ForController(of, ""), nil).(tracker.Sizer)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[sizer] = struct{}{}
}

// Describe implements [prometheus.Collector].
func (t *trackers) Describe(descs chan<- *prometheus.Desc) {
	descs <- t.watchers
	descs <- t.references
}

// Collect implements [prometheus.Collector].
func (t *trackers) Collect(metrics chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) == 0 {
		return
	}
	var sum tracker.Size
	for sizer := range t.all {
		size := sizer.Size()
		sum.Watchers += size.Watchers
		sum.References += size.References
	}
	metrics <- prometheus.MustNewConstMetric(t.watchers, prometheus.GaugeValue, float64(sum.Watchers))
	metrics <- prometheus.MustNewConstMetric(t.references, prometheus.GaugeValue, float64(sum.References))
}
