package reconcilers

import (
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/observe"

	"k8s.io/apimachinery/pkg/types"
)

// componentMemory is what a node remembers of the component of one resource.
type componentMemory struct {
	engine engine.Memory
	// objects is the inventory in objects of its own; nil until it is needed.
	objects inventory.Store

	// deployment is where the component is deployed; release ends its interest there.
	deployment *componentDeployment
	release    func()

	// activity and tries are for what nobody tells us about: how often a request found nothing new.
	activity string
	tries    int

	// unkept is how many requests in a row recorded objects and did not find the records kept.
	unkept int

	// recorded are the events of the last minutes.
	recorded map[componentEvent]time.Time
}

// memoryOf returns the memory of the component of resource: it is part of what the root remembers of the resource. Without a root,
// nothing is remembered from request to request.
func (r *ComponentReconciler[T]) memoryOf(ctx context.Context, resource T) *componentMemory {
	if p := scopeOf(ctx).pass; p != nil && p.memory != nil {
		return recall(p.memory, componentMemoryKey{r}, func() *componentMemory { return &componentMemory{} })
	}
	return r.strays.of(resource.GetUID())
}

type componentMemoryKey struct{ node any }

// strayMemories are those of resources that no root remembers, in a hand-written controller.
type strayMemories struct {
	mu sync.Mutex
	by map[types.UID]*componentMemory
}

func (s *strayMemories) of(uid types.UID) *componentMemory {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.by[uid]
	if !ok {
		if s.by == nil {
			s.by = map[types.UID]*componentMemory{}
		}
		known = &componentMemory{}
		s.by[uid] = known
	}
	return known
}

func (s *strayMemories) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, uid)
}

// moveTo notes where the component is deployed. What it was interested in elsewhere is of no interest any more.
func (m *componentMemory) moveTo(all *componentDeployments, deployment *componentDeployment, uid types.UID, of observe.Component) {
	if m.deployment == deployment {
		return
	}
	m.forgotten()
	m.engine = engine.Memory{}
	m.deployment = deployment
	m.release = func() { all.leave(deployment, uid, of) }
}

// forgotten is called when the resource is gone.
func (m *componentMemory) forgotten() {
	if m.release != nil {
		m.release()
	}
	m.release, m.deployment = nil, nil
}

// again counts a request that has to wait, and returns how many there were before without anything new.
func (m *componentMemory) again(activity string, changed bool) int {
	if m.activity != activity || changed {
		m.activity, m.tries = activity, 0
		return 0
	}
	m.tries++
	return m.tries
}

// progressed starts counting anew.
func (m *componentMemory) progressed(activity string) {
	m.activity, m.tries = activity, 0
}

// recordedInVain counts a request, and tells whether too many in a row recorded objects without finding the records kept.
func (m *componentMemory) recordedInVain(recorded bool) bool {
	if !recorded {
		m.unkept = 0
		return false
	}
	m.unkept++
	return m.unkept > maxUnkept
}

// maxUnkept leaves room for conflicts of the status with other writers.
const maxUnkept = 20
