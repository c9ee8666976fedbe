package resourcestate

import (
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/few"

	"k8s.io/apimachinery/pkg/types"
)

// Memory has what one node remembers of each of its children, for a limited number of them. The zero value is ready for
// use, also concurrently.
type Memory[Value any] struct {
	mu      sync.Mutex
	byChild few.Map[Child, Value]
}

// maxRemembered is for how many children a node remembers something. If there are more, it forgets all.
const maxRemembered = 4096

// Child identifies a child also after it was created again.
type Child struct {
	Resource types.UID
	// Path is the path of the node, which ends with the identity of a child of a set.
	Path string
	// Name is the name of the child. It is empty if it is generated, and if it does not count.
	Name string
}

// Recreation is the last attempt to delete a child so that it is created again.
type Recreation struct {
	// Desired is what was desired.
	Desired Desired
	// Deleted reports whether the child was deleted. Else a dry run has shown that what is desired cannot be created
	// either.
	Deleted bool
	// Version and At are the version of the child, and the time.
	Version string
	At      time.Time
}

// DesiredName is the name that was desired of a child in the last request.
type DesiredName struct {
	// Generation is that of the resource.
	Generation int64
	Name       string
	// Changed reports whether another name was desired in the request before, for the same generation.
	Changed bool
}

// Next returns what is known after a request in which name is desired, and whether the name changed in two requests in
// a row.
func (d DesiredName) Next(generation int64, name string) (next DesiredName, unstable bool) {
	next = DesiredName{Generation: generation, Name: name}
	next.Changed = d.Name != "" && d.Generation == generation && d.Name != name
	return next, next.Changed && d.Changed
}

// Get returns what is remembered of a child, empty if it is nothing.
func (m *Memory[Value]) Get(child Child) Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _ := m.byChild.Get(child)
	return value
}

// Put remembers value of a child.
func (m *Memory[Value]) Put(child Child, value Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byChild.Len() > maxRemembered {
		m.byChild = few.Map[Child, Value]{}
	}
	m.byChild.Put(child, value)
}
