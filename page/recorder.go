package page

import (
	"container/list"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
)

// recorder has what the page knows of all roots. Its lock is taken once in a request, to find the resource.
type recorder struct {
	maxResources int
	// room is how many more objects of components there is room for.
	room atomic.Int64

	byNode sync.Map // of *reconcilers.Node to *rootRecord

	mu    sync.Mutex
	roots []*rootRecord
	// recent has the resources, the last reconciled first.
	recent *list.List
	// dropped is how many resources have made room for others.
	dropped int
}

func newRecorder(maxResources, maxObjects int) *recorder {
	r := &recorder{maxResources: maxResources, recent: list.New()}
	r.room.Store(int64(maxObjects))
	return r
}

// root returns the record of a root, which is made the first time.
func (r *recorder) root(node *reconcilers.Node) *rootRecord {
	if known, ok := r.byNode.Load(node.Root); ok {
		return known.(*rootRecord)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byNode.Load(node.Root); ok {
		return known.(*rootRecord)
	}
	id := node.Controller
	for n := 2; slices.ContainsFunc(r.roots, func(other *rootRecord) bool { return other.id == id }); n++ {
		id = fmt.Sprintf("%s-%d", node.Controller, n)
	}
	made := newRootRecord(id, node.Root)
	r.roots = append(r.roots, made)
	r.byNode.Store(node.Root, made)
	return made
}

// rootByID returns the root with an ID, or nil.
func (r *recorder) rootByID(id string) *rootRecord {
	for _, root := range r.allRoots() {
		if root.id == id {
			return root
		}
	}
	return nil
}

func (r *recorder) allRoots() []*rootRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.roots)
}

// resource returns the record of a resource that is about to be reconciled. If it is new and there is no room, it takes
// the place of the one that was not reconciled for the longest time.
func (r *recorder) resource(root *rootRecord, key types.NamespacedName) *resourceRecord {
	found, oldest := r.find(root, key)
	if oldest != nil {
		oldest.leave(r)
	}
	return found
}

func (r *recorder) find(root *rootRecord, key types.NamespacedName) (found, oldest *resourceRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := root.resources[key]; known != nil {
		r.recent.MoveToFront(known.element)
		return known, nil
	}
	if r.recent.Len() >= r.maxResources {
		oldest = r.recent.Back().Value.(*resourceRecord)
		r.remove(oldest)
		r.dropped++
	}
	made := &resourceRecord{root: root, key: key}
	made.element = r.recent.PushFront(made)
	root.resources[key] = made
	return made, oldest
}

// remove drops a resource. The lock is held.
func (r *recorder) remove(resource *resourceRecord) {
	r.recent.Remove(resource.element)
	delete(resource.root.resources, resource.key)
}

// forget drops a resource that is gone.
func (r *recorder) forget(root *rootRecord, key types.NamespacedName) {
	r.mu.Lock()
	known := root.resources[key]
	if known != nil {
		r.remove(known)
	}
	r.mu.Unlock()
	if known != nil {
		known.leave(r)
	}
}

// known returns the record of a resource, or nil.
func (r *recorder) known(root *rootRecord, key types.NamespacedName) *resourceRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return root.resources[key]
}

// resourcesOf returns the resources of a root, in no order.
func (r *recorder) resourcesOf(root *rootRecord) []*resourceRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*resourceRecord, 0, len(root.resources))
	for _, resource := range root.resources {
		all = append(all, resource)
	}
	return all
}

// usage is how much the page knows.
type usage struct {
	Resources    int `json:"resources"`
	MaxResources int `json:"maxResources"`
	// Dropped is how many resources have made room for others.
	Dropped int `json:"dropped"`
	// RoomForObjects is how many more objects of components there is room for.
	RoomForObjects int64 `json:"roomForObjects"`
}

func (r *recorder) usage() usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return usage{
		Resources: r.recent.Len(), MaxResources: r.maxResources, Dropped: r.dropped, RoomForObjects: r.room.Load(),
	}
}
