// Package resourcestate keeps what a controller knows of a resource from one request to the next, for as long as the
// resource lives.
//
// A [Store] belongs to one root and has a [State] for each resource. A State has values of any type, under keys that
// their owners choose. An [Evictor] drops what it does not need any more at the end of each request. When the resource
// is gone, values that are an [io.Closer] are closed.
//
// The values that are about writes are here. They decide by what they know, and know the time only as an argument:
//
//   - [OwnWrites] are writes that the cache may not show yet.
//   - [LastWrites] say which version of an object agrees with what is desired, and what was learned from the answers.
//   - [Paces] limit how often an object is written again.
//   - [Refusals] are writes that the API server refuses as invalid.
//   - [Memory] is what a node remembers of its children: a [Recreation] of one that was deleted because of such a
//     refusal, and the [DesiredName] of the last request.
package resourcestate

import (
	"context"
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

// Of returns the state of resource, and makes it at the first call. A resource of the same name with another UID gets a
// new state, and the one of its predecessor is closed.
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
	known.Close()
	return state
}

// Lookup returns the state of the resource of that name, with any UID, or nil.
func (s *Store) Lookup(name types.NamespacedName) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

// SetUID makes state, the one of a resource that did not exist, the state of the resource that was created with that
// name.
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
	gone.Close()
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
	uid    types.UID
	mu     sync.Mutex
	values map[any]any
	// writes are those of the resource itself; nil unless the cache may not show one yet.
	writes *OwnWrites
}

// Wrote notes that written is the answer of the API server to a write of the resource itself, see [OwnWrites.Wrote].
func (s *State) Wrote(written client.Object, created bool, now time.Time) {
	s.ownWrites().Wrote(written, created, now)
}

// Deleted notes that the resource itself was deleted.
func (s *State) Deleted(obj client.Object, now time.Time) {
	s.ownWrites().Deleted(obj, now)
}

// Resolve returns what is believed of the resource that the cache shows, see [OwnWrites.Resolve].
func (s *State) Resolve(cached client.Object, now time.Time) client.Object {
	s.mu.Lock()
	writes := s.writes
	s.mu.Unlock()
	if writes == nil {
		return cached
	}
	return writes.Resolve(cached, now)
}

// Unseen returns the resource if it was created and the cache does not show it yet, see [OwnWrites.Unseen]. Else it
// returns nil.
func (s *State) Unseen(ctx context.Context, reader client.Reader, now time.Time) (client.Object, error) {
	unseen, err := s.ownWrites().Unseen(ctx, reader, nil, now)
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	return unseen[0], nil
}

func (s *State) ownWrites() *OwnWrites {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes == nil {
		s.writes = &OwnWrites{}
	}
	return s.writes
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

// LoadOrNew is [LoadOrStore] for a pointer to an empty V.
func LoadOrNew[V any](s *State, key any) *V {
	return LoadOrStore(s, key, func() *V { return new(V) })
}

// Load returns the value under key, and false if there is none that is a V.
func Load[V any](s *State, key any) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[key].(V)
	return value, ok
}

// Drop drops the value under key, and closes it. An error of a Close has no reader.
func (s *State) Drop(key any) {
	s.mu.Lock()
	dropped := s.values[key]
	delete(s.values, key)
	s.mu.Unlock()
	if closer, ok := dropped.(io.Closer); ok {
		_ = closer.Close()
	}
}

// Evictor is a value that drops what it does not need any more.
type Evictor interface {
	// Evict is called at the end of each request; now is the time of the request. An empty value is dropped.
	Evict(now time.Time) (empty bool)
}

// EndRequest drops what has not been used for a while. It is called at the end of each request of the resource; now is
// the time of the request.
func (s *State) EndRequest(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range s.values {
		if e, ok := value.(Evictor); ok && e.Evict(now) {
			delete(s.values, key)
		}
	}
	if s.writes != nil && s.writes.Evict(now) {
		s.writes = nil
	}
}

// Close drops the values, and closes them. An error of a Close has no reader left: the resource is gone.
func (s *State) Close() {
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
