package reconcilers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what a root remembers of one resource, for as long as the resource exists: what saves work, and what our own
// last writes were, so that a cache that lags behind them is noticed.
type memory struct {
	barrier barrier

	mu     sync.Mutex
	uid    types.UID
	values map[any]any
}

// recall returns the value that a node keeps under key, made by empty at the first call.
func recall[T any](m *memory, key any, empty func() T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value, ok := m.values[key].(T); ok {
		return value
	}
	value := empty()
	if m.values == nil {
		m.values = map[any]any{}
	}
	m.values[key] = value
	return value
}

// patience is for how many requests on end something may go unused before it is forgotten. What an error or a halt kept a
// request from reaching is used again soon.
const patience = 64

// sweeper is a value in a memory that can tell what of it is still used.
type sweeper interface {
	// sweep ends a request. It drops what has not been used for longer than patience has it, and tells whether anything is left.
	sweep() bool
}

// sweep drops what has not been used for a while. It is called at the end of each request.
func (m *memory) sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, value := range m.values {
		if s, ok := value.(sweeper); ok && !s.sweep() {
			delete(m.values, key)
		}
	}
}

// memories are those of all resources of a root.
type memories struct {
	mu sync.Mutex
	by map[types.NamespacedName]*memory
}

// of returns the memory of resource. A resource of the same name with another UID starts with an empty one.
func (m *memories) of(resource client.Object) *memory {
	key := client.ObjectKeyFromObject(resource)
	m.mu.Lock()
	known, ok := m.by[key]
	if ok && known.uid == resource.GetUID() {
		m.mu.Unlock()
		return known
	}
	if m.by == nil {
		m.by = map[types.NamespacedName]*memory{}
	}
	fresh := &memory{uid: resource.GetUID()}
	m.by[key] = fresh
	m.mu.Unlock()
	known.end()
	return fresh
}

// known returns the memory of the resource of that name, whichever was seen last; nil if there is none.
func (m *memories) known(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[key]
}

// adopt makes the memory of a resource that did not exist that of the one which was made.
func (m *memories) adopt(key types.NamespacedName, absent *memory, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by[key] == absent && absent.uid == "" {
		absent.uid = uid
	}
}

// forget drops the memory of a resource that is gone.
func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	gone := m.by[key]
	delete(m.by, key)
	m.mu.Unlock()
	gone.end()
}

// ender is a value in a memory that holds on to something.
type ender interface {
	// forgotten lets go of it, once the resource is gone.
	forgotten()
}

// end lets go of what the memory of a resource that is gone holds on to.
func (m *memory) end() {
	if m == nil {
		return
	}
	m.mu.Lock()
	values := m.values
	m.values = nil
	m.mu.Unlock()
	for _, value := range values {
		if e, ok := value.(ender); ok {
			e.forgotten()
		}
	}
}
