package page

import (
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
)

// The views, which templates get.
type (
	ConditionView = conditionView
	RequestView   = requestView
	WriteView     = writeView
	CountView     = countView
	WaveView      = waveView
	ObstacleView  = obstacleView
	OperationView = operationView
	FeatureView   = featureView
	DependentView = dependentView
	NodeView      = nodeView
	Link          = link
	Moment        = moment
	ListRow       = listRow
	ResourceView  = resourceView
	TreeView      = treeView
	ObjectView    = objectView
	Frame         = frame

	WatchFailureView = watchFailureView
)

// MaxRequests is how many requests of a resource are kept.
const MaxRequests = maxRequests

// At sets the time at which pages are made.
func (p *Page) At(now time.Time) { p.now = func() time.Time { return now } }

// Patience is for how long a client may take nothing of what is sent.
const Patience = patience

// StreamClients is how many clients are told of changes.
func (p *Page) StreamClients() int { return int(p.streams.count.Load()) }

// RoomForObjects is how many more objects of components there is room for.
func (p *Page) RoomForObjects() int64 { return p.recorder.room.Load() }

// Overview returns the view of all roots.
func (p *Page) Overview() overviewView {
	var roots []rootSnapshot
	for _, root := range p.recorder.allRoots() {
		roots = append(roots, p.recorder.snapshotOf(root))
	}
	return overviewOf(frame{}, p.watches.views(p.now()), roots)
}

// Resource returns the view of a resource, or an empty one if it is not known.
func (p *Page) Resource(root string, key types.NamespacedName) resourceView {
	record := p.recorder.rootByID(root)
	known := p.recorder.known(record, key)
	if known == nil {
		return resourceView{}
	}
	snapshot, state := p.recorder.snapshotOf(record), known.snapshot()
	return resourceViewOf(frame{}, &snapshot, &state, p.linkTo, p.now())
}

// Inventory returns a page of the objects of a component.
func (p *Page) Inventory(root string, key types.NamespacedName, path, text, phase string, page int) inventoryView {
	progress := p.recorder.known(p.recorder.rootByID(root), key).component(path)
	return inventoryViewOf(frame{}, root, key, progress, inventoryFilter{text: text, phase: phase, page: page}, p.now())
}

// List returns a page of the resources of a root, of which all are seen.
func (p *Page) List(root, text, state string, page int) listView {
	record := p.recorder.rootByID(root)
	var all []brief
	for _, resource := range p.recorder.resourcesOf(record) {
		all = append(all, resource.brief())
	}
	snapshot := p.recorder.snapshotOf(record)
	filter := listFilter{text: text, state: state, page: page}
	return listOf(frame{}, &snapshot, all, filter, func(string) bool { return true }, p.now())
}

// WavesOfDeletion returns the waves of a deletion of objects with these orders.
func WavesOfDeletion(orders []int16) []waveView {
	made := &inventory{rows: make([]row, len(orders)), total: len(orders)}
	for i, order := range orders {
		made.rows[i].deleteOrder = order
	}
	return wavesOf(made, true, nil)
}

// SetAccess sets who sees what.
func (p *Page) SetAccess(access Access) { p.options.Access = access }

// RootNode is the node of a root.
func (p *Page) RootNode(id string) *reconcilers.Node { return p.recorder.rootByID(id).node }
