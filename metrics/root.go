package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/prometheus/client_golang/prometheus"
)

// maxPaths is how many values the label path has for one root. The nodes of a tree have fewer. If a function of the
// author makes nodes with names of its own for each request, those that come later share the path "Other".
const maxPaths = 500

// other is the path of the nodes beyond maxPaths.
const other = "Other"

// success is the result of a write without an error.
const success = "Success"

// root has the series of a root, and what its metrics need of the resources.
type root struct {
	*collectors
	controller  string
	perResource bool
	// hasResources is false for a webhook: it does not know which resources there are.
	hasResources bool
	saved        prometheus.Counter

	nodesMu sync.RWMutex
	nodes   map[*reconcilers.Node]*node
	paths   map[string]*node

	*reconciled
}

func newRoot(c *collectors, perResource bool, of *reconcilers.Node, resources *reconciled) *root {
	controller := labelValue(of.Controller)
	return &root{
		collectors: c, controller: controller, perResource: perResource,
		hasResources: of.Kind != "AdmissionWebhookAdapter",
		saved:        c.writesSaved.WithLabelValues(controller),
		nodes:        map[*reconcilers.Node]*node{},
		paths:        map[string]*node{},
		reconciled:   resources,
	}
}

// labelValue returns a text of an author or of a resource as Prometheus takes it, which panics at other texts.
func labelValue(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// node has the series of the nodes with one path.
type node struct {
	path, controller string
	duration         prometheus.Observer
	outcomes         *prometheus.CounterVec
	// counters are those of the outcomes without an error. They are made when they are needed first.
	counters [4]struct {
		once sync.Once
		prometheus.Counter
	}
}

// withoutError are the states that have counters in a node.
var withoutError = [4]reconcilers.State{
	reconcilers.StateUnchanged, reconcilers.StateChanged, reconcilers.StateWaiting, reconcilers.StateHalted,
}

// node returns the series of a node.
func (r *root) node(of *reconcilers.Node) *node {
	r.nodesMu.RLock()
	known := r.nodes[of]
	r.nodesMu.RUnlock()
	if known != nil {
		return known
	}
	r.nodesMu.Lock()
	defer r.nodesMu.Unlock()
	path := labelValue(of.Label)
	if r.paths[path] == nil && len(r.paths) >= maxPaths-1 {
		path = other
	}
	made := r.paths[path]
	if made == nil {
		made = &node{
			path: path, controller: r.controller,
			duration: r.nodeDuration.WithLabelValues(r.controller, path), outcomes: r.nodeOutcomes,
		}
		r.paths[path] = made
	}
	if len(r.nodes) < 2*maxPaths {
		r.nodes[of] = made
	}
	return made
}

func (n *node) ended(outcome reconcilers.Outcome) {
	n.duration.Observe(outcome.Took.Seconds())
	i := slices.Index(withoutError[:], outcome.State)
	if i < 0 {
		n.outcomes.WithLabelValues(n.controller, n.path, string(outcome.State), string(outcome.Class)).Inc()
		return
	}
	c := &n.counters[i]
	c.once.Do(func() { c.Counter = n.outcomes.WithLabelValues(n.controller, n.path, string(outcome.State), "") })
	c.Inc()
}

func (r *root) countWrite(w reconcilers.Write) {
	result := success
	if w.Err != nil {
		result = string(reconcilers.Classify(w.Err))
	}
	r.writes.WithLabelValues(
		r.controller, labelValue(w.Object.Group), labelValue(w.Object.Kind), w.Subresource, w.Verb, result).Inc()
}

// countCauses counts each kind once.
func (r *root) countCauses(causes []reconcilers.Cause) {
	for i, cause := range causes {
		if !slices.ContainsFunc(causes[:i], func(c reconcilers.Cause) bool { return c.Kind == cause.Kind }) {
			r.requestCauses.WithLabelValues(r.controller, string(cause.Kind)).Inc()
		}
	}
}
