package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// collectors are the metrics. Observers of one registry share them.
type collectors struct {
	nodeDuration, componentRollout, componentState *prometheus.HistogramVec

	nodeOutcomes, requestCauses, writes, writesSaved, writesHeld, cacheLags, conditionTransitions *prometheus.CounterVec
	watchFailures                                                                                 *prometheus.CounterVec

	resources, conditions, resourceCondition         *prometheus.GaugeVec
	components, componentObjects, componentObstacles *prometheus.GaugeVec
	componentWaves                                   *prometheus.GaugeVec
	features, resourceFeature                        *prometheus.GaugeVec
	watches                                          *prometheus.GaugeVec
	sizes                                            *sizes
	shards                                           *shards
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
		componentState:       shared(r, componentState, definition.histogram),
		componentWaves:       shared(r, componentWaves, definition.gauge),
		features:             shared(r, features, definition.gauge),
		resourceFeature:      shared(r, resourceFeature, definition.gauge),
		watches:              shared(r, watches, definition.gauge),
		watchFailures:        shared(r, watchFailures, definition.counter),
		sizes:                shared(r, trackerWatchers, newSizes),
		shards:               shared(r, shardHeld, newShards),
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
