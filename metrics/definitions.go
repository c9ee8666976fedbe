package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// definition is what is promised of a metric. The names of the metrics begin with "espalier_".
type definition struct {
	name, help string
	kind       kind
	labels     []string
	// buckets are the upper bounds of a histogram, which is a native one too.
	buckets []float64
	// perResource is true if the metric has series for single resources, which an option asks for.
	perResource bool
}

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

var (
	nodeDuration = definition{
		name: "espalier_node_duration_seconds", kind: histogram, labels: []string{"controller", "path"},
		help:    "How long a node ran, with the nodes below it.",
		buckets: []float64{0.005, 0.05, 0.5, 5},
	}
	nodeOutcomes = definition{
		name: "espalier_node_outcomes_total", kind: counter, labels: []string{"controller", "path", "outcome", "class"},
		help: "How often a node ended in which way. The class is that of an error.",
	}
	requestCauses = definition{
		name: "espalier_request_causes_total", kind: counter, labels: []string{"controller", "cause"},
		help: "What has brought requests about. A request has one or more causes.",
	}
	writes = definition{
		name: "espalier_writes_total", kind: counter,
		labels: []string{"controller", "group", "kind", "subresource", "verb", "result"},
		help:   "Writes of objects. The result is Success or the class of the error.",
	}
	writesSaved = definition{
		name: "espalier_writes_saved_total", kind: counter, labels: []string{"controller"},
		help: "Objects that were not read or written because they are known to be as desired.",
	}
	writesHeld = definition{
		name: "espalier_writes_held_total", kind: counter, labels: []string{"controller", "reason"},
		help: "Writes that were held back to spare the cluster.",
	}
	cacheLags = definition{
		name: "espalier_cache_lags_total", kind: counter, labels: []string{"controller"},
		help: "Requests that found the cache older than what the controller has written.",
	}
	resources = definition{
		name: "espalier_resources", kind: gauge, labels: []string{"controller"},
		help: "Number of resources that the controller has reconciled and that are not gone.",
	}
	conditions = definition{
		name: "espalier_conditions", kind: gauge, labels: []string{"controller", "type", "status"},
		help: "Number of resources by the status of a condition.",
	}
	conditionTransitions = definition{
		name: "espalier_condition_transitions_total", kind: counter, labels: []string{"controller", "type", "status"},
		help: "How often a condition of a resource changed to the status. What the first request found is no change.",
	}
	resourceCondition = definition{
		name: "espalier_resource_condition_timestamp_seconds", kind: gauge, perResource: true,
		labels: []string{"controller", "namespace", "name", "type", "status"},
		help:   "Since when a condition of a resource has had its status, in Unix seconds. A condition has one series.",
	}
	components = definition{
		name: "espalier_components", kind: gauge, labels: []string{"controller", "path", "state"},
		help: "Number of components by state.",
	}
	componentObjects = definition{
		name: "espalier_component_objects", kind: gauge, labels: []string{"controller", "path", "phase"},
		help: "Number of objects of components by phase.",
	}
	componentObstacles = definition{
		name: "espalier_component_obstacles", kind: gauge, labels: []string{"controller", "path", "kind"},
		help: "Number of objects that components wait for or cannot write, by the kind of obstacle.",
	}
	componentRollout = definition{
		name: "espalier_component_rollout_duration_seconds", kind: histogram, labels: []string{"controller", "path"},
		help:    "How long a roll-out of a component took until it was ready.",
		buckets: []float64{1, 10, 60, 600, 3600},
	}
	componentState = definition{
		name: "espalier_component_state_duration_seconds", kind: histogram,
		labels:  []string{"controller", "path", "state"},
		help:    "How long a component was in a state that it has left. That it was found in first is not measured.",
		buckets: []float64{1, 10, 60, 600, 3600},
	}
	componentWaves = definition{
		name: "espalier_component_waves", kind: gauge, labels: []string{"controller", "path", "wave"},
		help: "Number of components by the order of the wave that a roll-out or a deletion is in.",
	}
	features = definition{
		name: "espalier_features", kind: gauge, labels: []string{"controller", "path", "status", "reason"},
		help: "Number of resources by the condition of a feature.",
	}
	resourceFeature = definition{
		name: "espalier_resource_feature_timestamp_seconds", kind: gauge, perResource: true,
		labels: []string{"controller", "namespace", "name", "feature", "status", "reason"},
		help:   "Since when a feature of a resource has been in its phase, in Unix seconds. A feature has one series.",
	}
	watches = definition{
		name: "espalier_watches", kind: gauge, labels: []string{"controller"},
		help: "Number of types that the nodes of the controller watch from the start on.",
	}
	watchFailures = definition{
		name: "espalier_watch_failures_total", kind: counter, labels: []string{"type"},
		help: "How often a Go type could not be listed or watched. Meanwhile no change of its objects is seen.",
	}
	componentWatches = definition{
		name: "espalier_component_watches", kind: gauge,
		help: "Number of types that components watch, in all clusters.",
	}
	componentCached = definition{
		name: "espalier_component_cached_objects", kind: gauge,
		help: "Number of objects of which components keep the metadata, in all clusters.",
	}
	trackerWatchers = definition{
		name: "espalier_tracker_watchers", kind: gauge,
		help: "Number of resources that are woken by events of objects that they track.",
	}
	trackerReferences = definition{
		name: "espalier_tracker_references", kind: gauge,
		help: "Number of references of resources to objects that they track.",
	}
	shardHeld = definition{
		name: "espalier_shard_held", kind: gauge, labels: []string{"ring"},
		help: "1 if the process holds the Lease of its shard, so that it reconciles and writes, and 0 if not.",
	}
	shardArrivals = definition{
		name: "espalier_shard_arrivals_total", kind: counter, labels: []string{"ring"},
		help: "Resources that became the shard's, with those that it found when it started.",
	}
	shardDrains = definition{
		name: "espalier_shard_drains_total", kind: counter, labels: []string{"ring"},
		help: "Resources that the shard gave back because the ring had asked for them.",
	}
	shardRefusedWrites = definition{
		name: "espalier_shard_refused_writes_total", kind: counter, labels: []string{"ring"},
		help: "Writes that were not sent because the process did not hold the Lease of its shard.",
	}
)

// definitions are those of all metrics.
var definitions = []definition{
	nodeDuration, nodeOutcomes, requestCauses, writes, writesSaved, writesHeld, cacheLags,
	resources, conditions, conditionTransitions, resourceCondition,
	components, componentObjects, componentObstacles, componentRollout, componentState, componentWaves,
	features, resourceFeature,
	watches, watchFailures, componentWatches, componentCached, trackerWatchers, trackerReferences,
	shardHeld, shardArrivals, shardDrains, shardRefusedWrites,
}

func (d definition) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.name, Help: d.help}, d.labels)
}

func (d definition) gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.name, Help: d.help}, d.labels)
}

// histogram returns a histogram for both kinds of scrapes: for those that ask for native histograms its resolution is
// finer than that of the buckets.
func (d definition) histogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.name, Help: d.help, Buckets: d.buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, d.labels)
}

func (d definition) desc() *prometheus.Desc { return prometheus.NewDesc(d.name, d.help, d.labels, nil) }
