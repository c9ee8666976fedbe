package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/tracker"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// dump is what a report of a defect needs. It has nothing that the pages do not show.
type dump struct {
	At       time.Time       `json:"at"`
	Replica  string          `json:"replica"`
	Leads    string          `json:"leads,omitempty"`
	Leader   string          `json:"leader,omitempty"`
	Go       string          `json:"go"`
	Observed time.Duration   `json:"observedNanoseconds"`
	Memory   memory          `json:"memory"`
	Usage    usage           `json:"usage"`
	Trackers []dumpedTracker `json:"trackers,omitempty"`
	// Queues are metrics of controller-runtime, by controller and name.
	Queues map[string]map[string]float64 `json:"queues,omitempty"`
	// WatchFailures are the types that cannot be watched.
	WatchFailures []watchFailureView `json:"watchFailures,omitempty"`
	// The list "roots" follows.
}

// dumpedTracker is how much a tracker remembers. Kinds are those of the objects that resources refer to.
type dumpedTracker struct {
	Watchers   int            `json:"watchers"`
	References int            `json:"references"`
	Kinds      map[string]int `json:"kinds,omitempty"`
}

// memory are numbers of the process.
type memory struct {
	HeapAlloc     uint64 `json:"heapAllocBytes"`
	HeapInuse     uint64 `json:"heapInuseBytes"`
	HeapObjects   uint64 `json:"heapObjects"`
	Sys           uint64 `json:"sysBytes"`
	NextGC        uint64 `json:"nextGCBytes"`
	NumGC         uint32 `json:"numGC"`
	PauseTotal    uint64 `json:"pauseTotalNanoseconds"`
	Goroutines    int    `json:"goroutines"`
	MaxProcs      int    `json:"maxProcs"`
	StreamClients int    `json:"streamClients"`
}

type dumpedRoot struct {
	ID       string         `json:"id"`
	Kind     string         `json:"kind"`
	Tree     string         `json:"tree,omitempty"`
	Known    int            `json:"resources"`
	Requests uint64         `json:"requests"`
	Counts   map[string]int `json:"counts"`
	Nodes    []dumpedNode   `json:"nodes"`
	// Watches are the types that nodes watch from the set-up on.
	Watches []string `json:"watches,omitempty"`
	// ComponentWatches has how many objects of each type components watch, for each cluster and identity.
	ComponentWatches []map[string]int `json:"componentWatches,omitempty"`
	// Unasked is true if there are too many namespaces to look up the rights for each.
	Unasked bool `json:"unasked,omitempty"`
	// The list "list" follows, of the resources.
}

type dumpedNode struct {
	Path    string         `json:"path"`
	Kind    string         `json:"kind"`
	Counts  map[string]int `json:"counts,omitempty"`
	Running int            `json:"running,omitempty"`
}

// dumpedResource is a resource. Of one that the viewer does not see, only the name is there.
type dumpedResource struct {
	Name       string             `json:"name"`
	State      string             `json:"state,omitempty"`
	When       *time.Time         `json:"when,omitempty"`
	Requests   uint64             `json:"requests,omitempty"`
	Error      string             `json:"error,omitempty"`
	Deleted    *time.Time         `json:"deleted,omitempty"`
	Finalizers []string           `json:"finalizers,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Nodes      []dumpedOutcome    `json:"nodes,omitempty"`
	Components []dumpedComponent  `json:"components,omitempty"`
}

type dumpedOutcome struct {
	Path  string        `json:"path"`
	Kind  string        `json:"kind"`
	State string        `json:"state"`
	Took  time.Duration `json:"tookNanoseconds"`
	Since time.Time     `json:"since"`
	Class string        `json:"class,omitempty"`
	Error string        `json:"error,omitempty"`
}

type dumpedComponent struct {
	Path      string         `json:"path"`
	State     string         `json:"state"`
	Reason    string         `json:"reason"`
	Message   string         `json:"message,omitempty"`
	Objects   int            `json:"objects"`
	Obstacles []obstacleView `json:"obstacles,omitempty"`
}

// serveDump sends the dump resource by resource, so that one of them is in memory at a time. The parameters kind, in
// any case, and namespace and name narrow it.
func (p *Page) serveDump(a *answer) {
	roots := slices.DeleteFunc(p.recorder.allRoots(), func(root *rootRecord) bool {
		kind := a.value("kind")
		return kind != "" && !strings.EqualFold(kind, root.node.Resource.Kind)
	})
	sights := make([]*sight, len(roots))
	resources := make([][]*resourceRecord, len(roots))
	for i, root := range roots {
		sights[i], resources[i] = sightOf(a.viewer, root.node.Resource), p.recorder.resourcesOf(root)
		if key := a.resourceKey(); key.Name != "" {
			// A resource without a namespace is found whatever the namespace is.
			resources[i] = slices.DeleteFunc(resources[i], func(r *resourceRecord) bool {
				return r.key.Name != key.Name || r.key.Namespace != "" && r.key.Namespace != key.Namespace
			})
		}
		slices.SortFunc(resources[i], func(a, b *resourceRecord) int {
			return strings.Compare(nameOf(a.key), nameOf(b.key))
		})
		// What the viewer sees has to be known before the answer begins.
		for _, resource := range resources[i] {
			if sights[i].ofNamespace(a.request.Context(), resource.key.Namespace); sights[i].err != nil {
				refuse(a, a.request, sights[i].err)
				return
			}
		}
	}
	f := p.frame(a, "", "")
	a.Header().Set("Content-Type", "application/json")
	w := &dumpWriter{answer: a, patience: p.patience}
	w.open(dump{
		At: a.now.UTC(), Replica: f.Replica, Leads: f.Leads, Leader: f.Leader.Text,
		Go: runtime.Version(), Observed: a.now.Sub(p.began),
		Memory: memoryOf(int(p.streams.count.Load())), Usage: f.Usage, Trackers: trackersOf(roots),
		Queues: queuesOf(ctrlmetrics.Registry), WatchFailures: p.watches.views(a.now),
	}, "roots")
	for i, root := range roots {
		snapshot := p.recorder.snapshotOf(root)
		dumped := dumpRoot(&snapshot)
		dumped.Unasked = sights[i].unasked
		w.open(dumped, "list")
		for _, resource := range resources[i] {
			one := dumpedResource{Name: nameOf(resource.key)}
			if sights[i].ofNamespace(a.request.Context(), resource.key.Namespace) {
				state := resource.snapshot()
				one = dumpResource(&snapshot, &state)
			}
			w.add(one)
		}
		w.close()
	}
	w.close()
	w.flush(0)
}

// dumpWriter writes an object whose last member is a list, value by value. After an error it writes nothing.
type dumpWriter struct {
	*answer
	patience time.Duration
	buffer   bytes.Buffer
	// following is true if the value is not the first of its list.
	following bool
	err       error
}

// flushedAt is how much is kept before it is sent, in bytes.
const flushedAt = 64 << 10

// open begins an object with the members of value, and with the list called name at the end.
func (w *dumpWriter) open(value any, name string) {
	w.add(value)
	if w.err == nil {
		w.buffer.Truncate(w.buffer.Len() - 1) // without the closing brace
		fmt.Fprintf(&w.buffer, ",%q:[", name)
	}
	w.following = false
}

// close ends the list and its object.
func (w *dumpWriter) close() {
	w.buffer.WriteString("\n]}")
	w.following = true
}

// add adds a value to the list.
func (w *dumpWriter) add(value any) {
	if w.flush(flushedAt); w.err != nil {
		return
	}
	if w.following {
		w.buffer.WriteByte(',')
	}
	if w.following = true; w.buffer.Len() > 0 {
		w.buffer.WriteByte('\n')
	}
	var encoded []byte
	if encoded, w.err = json.Marshal(value); w.err == nil {
		w.buffer.Write(encoded)
	}
}

// flush sends what is kept if it is that much.
func (w *dumpWriter) flush(size int) {
	if w.err == nil && w.buffer.Len() >= size && !w.send(w.buffer.String(), w.patience) {
		w.err = errClientGone
	}
	if w.err != nil || w.buffer.Len() >= size {
		w.buffer.Reset()
	}
}

var errClientGone = errors.New("the client does not read")

// trackersOf returns how much the trackers of some roots remember. Roots may share one.
func trackersOf(roots []*rootRecord) []dumpedTracker {
	var trackers []dumpedTracker
	seen := map[tracker.Sizer]bool{}
	for _, root := range roots {
		if of := root.setUpWith.Load(); of != nil && of.tracker != nil && !seen[of.tracker] {
			seen[of.tracker] = true
			size := of.tracker.Size()
			trackers = append(trackers, dumpedTracker{
				Watchers: size.Watchers, References: size.References, Kinds: dumpKinds(of.tracker.Kinds()),
			})
		}
	}
	return trackers
}

func dumpKinds(numbers map[schema.GroupKind]int) map[string]int {
	texts := make(map[string]int, len(numbers))
	for kind, n := range numbers {
		texts[kind.String()] = n
	}
	return texts
}

// queueMetrics are the metrics of controller-runtime that say what controllers have to do.
var queueMetrics = []string{
	"workqueue_depth", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds",
	"controller_runtime_active_workers", "controller_runtime_max_concurrent_reconciles",
}

// queuesOf returns what controllers have to do, by controller and metric.
func queuesOf(registry gatherer) map[string]map[string]float64 {
	families, _ := registry.Gather() // what could be gathered is all there is to say
	queues := map[string]map[string]float64{}
	for _, family := range families {
		if !slices.Contains(queueMetrics, family.GetName()) {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() != "controller" {
					continue
				}
				if queues[label.GetValue()] == nil {
					queues[label.GetValue()] = map[string]float64{}
				}
				// The depth has a label for the priority.
				queues[label.GetValue()][family.GetName()] += metric.GetGauge().GetValue()
			}
		}
	}
	return queues
}

type gatherer interface {
	Gather() ([]*dto.MetricFamily, error)
}

func memoryOf(clients int) memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{
		HeapAlloc: m.HeapAlloc, HeapInuse: m.HeapInuse, HeapObjects: m.HeapObjects, Sys: m.Sys, NextGC: m.NextGC,
		NumGC: m.NumGC, PauseTotal: m.PauseTotalNs, Goroutines: runtime.NumGoroutine(),
		MaxProcs: runtime.GOMAXPROCS(0), StreamClients: clients,
	}
}

func dumpRoot(s *rootSnapshot) dumpedRoot {
	d := dumpedRoot{
		ID: s.id, Kind: s.node.Resource.Kind, Known: s.resources, Requests: s.requests,
		Counts: dumpCounts(&s.counts[0]),
	}
	if s.tree != nil {
		d.Tree = s.tree.String()
	}
	for _, kind := range s.watched {
		d.Watches = append(d.Watches, kind.GroupKind().String())
	}
	for _, watching := range s.watching {
		d.ComponentWatches = append(d.ComponentWatches, dumpKinds(watching.Kinds()))
	}
	for slot, node := range s.nodes {
		d.Nodes = append(d.Nodes, dumpedNode{
			Path: node.Path, Kind: node.Kind, Counts: dumpCounts(&s.counts[slot]), Running: s.running[slot],
		})
	}
	return d
}

func dumpCounts(counts *stateCounts) map[string]int {
	numbers := map[string]int{}
	for _, c := range countsOf("", counts) {
		numbers[c.State] = c.Count
	}
	return numbers
}

func dumpResource(root *rootSnapshot, s *resourceSnapshot) dumpedResource {
	d := dumpedResource{Name: nameOf(s.key), Requests: s.count, Finalizers: s.finalizers, Conditions: s.conditions}
	if !s.deleted.IsZero() {
		d.Deleted = &s.deleted
	}
	for slot := range min(len(s.nodes), len(root.nodes)) {
		n := &s.nodes[slot]
		if slot == 0 {
			d.State, d.Error = n.state.String(), n.err
			if !n.when.IsZero() {
				d.When = &n.when
			}
		}
		if n.request == s.count && s.count > 0 {
			d.Nodes = append(d.Nodes, dumpedOutcome{
				Path: root.nodes[slot].Path, Kind: root.nodes[slot].Kind, State: n.state.String(), Took: n.took,
				Since: n.since, Class: string(n.class), Error: n.err,
			})
		}
	}
	for _, c := range s.sortedComponents() {
		one := dumpedComponent{
			Path: c.path, State: string(c.state), Reason: c.reason, Message: c.message, Objects: c.inventory.total,
		}
		for _, o := range c.obstacles {
			one.Obstacles = append(one.Obstacles, obstacleView{Object: o.Object, Kind: o.Kind, Message: o.Message})
		}
		d.Components = append(d.Components, one)
	}
	return d
}
