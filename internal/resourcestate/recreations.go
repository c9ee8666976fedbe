package resourcestate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Recreations are the children of one node that were deleted to be created again, or that could not be. A root keeps
// them with the resource.
type Recreations struct {
	mu      sync.Mutex
	byChild map[RecreatedChild]Recreation
}

// RecreatedChild identifies a child also after it was created again.
type RecreatedChild struct {
	Resource types.UID
	// Path is the path of the node, which ends with the identity of a child of a set.
	Path string
	// Name is the name of the child; empty if it is generated.
	Name string
}

// Recreation is the last attempt to recreate a child.
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

// Get returns the last attempt for a child, empty if there is none.
func (r *Recreations) Get(key RecreatedChild) Recreation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byChild[key]
}

// Put remembers the last attempt for a child.
func (r *Recreations) Put(key RecreatedChild, attempt Recreation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byChild == nil {
		r.byChild = map[RecreatedChild]Recreation{}
	}
	r.byChild[key] = attempt
}
