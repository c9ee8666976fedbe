// Package resourcestate keeps what a controller knows of a resource from one request to the next, for as long as the resource
// lives.
//
// A [Store] belongs to one root and has a [State] for each resource. A State has values of any type, under keys that the owners
// of the values choose. Two of the types are here: [OwnWrites] are writes that the cache may not show yet, [Map] is a table of
// entries that are dropped when they are not used any more. A State is closed when its resource is gone, and then closes those
// of its values that are an [io.Closer].
package resourcestate

import (
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store keeps the states of the resources of one root. The zero value is ready for use, also concurrently.
type Store struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*State
}

// Of returns the state of resource, and makes it at the first call. A resource of the same name with another UID gets a new
// state, and the one of its predecessor is closed.
func (s *Store) Of(resource client.Object) *State {
	name := client.ObjectKeyFromObject(resource)
	s.mu.Lock()
	known, ok := s.byName[name]
	if ok && known.uid == resource.GetUID() {
		s.mu.Unlock()
		return known
	}
	if s.byName == nil {
		s.byName = map[types.NamespacedName]*State{}
	}
	state := &State{uid: resource.GetUID()}
	s.byName[name] = state
	s.mu.Unlock()
	known.close()
	return state
}

// Lookup returns the state of the resource of that name, whatever its UID, or nil.
func (s *Store) Lookup(name types.NamespacedName) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

// SetUID makes state, the one of a resource that did not exist, the state of the resource that was created with that name.
func (s *Store) SetUID(name types.NamespacedName, state *State, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == state && state.uid == "" {
		state.uid = uid
	}
}

// Forget drops and closes the state of a resource that is gone.
func (s *Store) Forget(name types.NamespacedName) {
	s.mu.Lock()
	gone := s.byName[name]
	delete(s.byName, name)
	s.mu.Unlock()
	gone.close()
}

// Each calls visit for each value of each state. It is for tests.
func (s *Store) Each(visit func(name types.NamespacedName, key, value any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, state := range s.byName {
		state.mu.Lock()
		for key, value := range state.values {
			visit(name, key, value)
		}
		state.mu.Unlock()
	}
}

// Len returns the number of states.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byName)
}

// State is what is known of one resource. It is safe for concurrent use.
type State struct {
	// Writes are those of the resource itself.
	Writes OwnWrites

	uid    types.UID
	mu     sync.Mutex
	values map[any]any
}

// LoadOrStore returns the value under key if it is a V. Else it stores the value that empty makes.
func LoadOrStore[V any](s *State, key any, empty func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.values[key].(V); ok {
		return value
	}
	value := empty()
	if s.values == nil {
		s.values = map[any]any{}
	}
	s.values[key] = value
	return value
}

// Load returns the value under key, and false if there is none that is a V.
func Load[V any](s *State, key any) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[key].(V)
	return value, ok
}

// evictor is a value that drops what is not used any more.
type evictor interface {
	// evict is called at the end of each request. It reports whether nothing is left of the value.
	evict(now time.Time) bool
}

// EndRequest drops what has not been used for a while. It is called at the end of each request of the resource; now is the time
// of the request.
func (s *State) EndRequest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range s.values {
		if e, ok := value.(evictor); ok && e.evict(now) {
			delete(s.values, key)
		}
	}
}

// close closes the values. An error of a Close has no reader left: the resource is gone.
func (s *State) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	values := s.values
	s.values = nil
	s.mu.Unlock()
	for _, value := range values {
		if closer, ok := value.(io.Closer); ok {
			_ = closer.Close()
		}
	}
}
