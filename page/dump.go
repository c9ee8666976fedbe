package page

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dump is what a report of a defect needs. It has nothing that the pages do not show.
type dump struct {
	At       time.Time     `json:"at"`
	Replica  string        `json:"replica"`
	Leads    string        `json:"leads,omitempty"`
	Go       string        `json:"go"`
	Observed time.Duration `json:"observedNanoseconds"`
	Memory   memory        `json:"memory"`
	Usage    usage         `json:"usage"`
	Roots    []dumpedRoot  `json:"roots"`
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
	ID        string           `json:"id"`
	Kind      string           `json:"kind"`
	Tree      string           `json:"tree,omitempty"`
	Known     int              `json:"resources"`
	Requests  uint64           `json:"requests"`
	Counts    map[string]int   `json:"counts"`
	Nodes     []dumpedNode     `json:"nodes"`
	Resources []dumpedResource `json:"list"`
	// Unasked is true if there are too many namespaces to look up the rights for each.
	Unasked bool `json:"unasked,omitempty"`
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

func (p *Page) serveDump(a *answer) {
	f := p.frame(a, "", "")
	d := dump{
		At: a.now.UTC(), Replica: f.Replica, Leads: f.Leads, Go: runtime.Version(), Observed: a.now.Sub(p.began),
		Memory: memoryOf(int(p.streams.count.Load())), Usage: f.Usage, Roots: []dumpedRoot{},
	}
	for _, root := range p.recorder.allRoots() {
		snapshot, s := p.recorder.snapshotOf(root), sightOf(a.viewer, root.node.Resource)
		dumped := dumpRoot(&snapshot)
		for _, resource := range p.recorder.resourcesOf(root) {
			one := dumpedResource{Name: nameOf(resource.key)}
			if s.ofNamespace(a.request.Context(), resource.key.Namespace) {
				state := resource.snapshot()
				one = dumpResource(&snapshot, &state)
			}
			dumped.Resources = append(dumped.Resources, one)
		}
		if s.err != nil {
			refuse(a, a.request, s.err)
			return
		}
		slices.SortFunc(dumped.Resources, func(a, b dumpedResource) int { return strings.Compare(a.Name, b.Name) })
		dumped.Unasked = s.unasked
		d.Roots = append(d.Roots, dumped)
	}
	a.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(a)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(d) // it fails only if the client is gone
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
	d := dumpedResource{Name: nameOf(s.key), Requests: s.count, Conditions: s.conditions}
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
