package store

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is the state of an API server in memory.
type memory struct {
	options Options
	catalog *memoryCatalog

	mu       sync.RWMutex
	state    state
	watchers map[*memoryWatcher]struct{}
}

// newMemory returns an empty store. The namespaces default, kube-system, kube-public and kube-node-lease exist there,
// unless the options leave them out.
func newMemory(options Options) *memory {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &memory{
		options: options,
		catalog: newMemoryCatalog(options),
		state:   newState(),
	}
	if !options.NoNamespaces {
		for _, name := range initialNamespaces {
			s.giveNamespace(name)
		}
	}
	return s
}

// Fork returns a copy. A change of one of the two does not change the other. Watches stay with the original.
func (s *memory) Fork() *memory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &memory{options: s.options, catalog: s.catalog, state: s.state.fork()}
}

// SetNow sets the time of the writes that follow, such as that of a run in a fork; nil is the real time.
func (s *memory) SetNow(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == nil {
		now = time.Now
	}
	s.options.Now = now
}

// Revision returns the revision of the last change. It is never 0.
func (s *memory) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.revision
}

// Changes returns the changes after a revision, oldest first.
func (s *memory) Changes(since int64) []Change {
	s.mu.RLock()
	defer s.mu.RUnlock()
	changes := s.state.since(since)
	public := make([]Change, len(changes))
	for i, c := range changes {
		public[i] = Change{Revision: c.revision, Key: c.key(), Manager: c.manager}
		if c.before != nil {
			public[i].Before = c.before.object
		}
		if c.after != nil {
			public[i].After = c.after.object
		}
	}
	return public
}

// Objects returns all objects as they are stored, ordered by kind, namespace and name. They must not be changed.
func (s *memory) Objects() []client.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var objects []client.Object
	for _, kind := range s.state.kinds() {
		for _, r := range s.state.tables[kind] {
			objects = append(objects, r.object)
		}
	}
	return objects
}

func (s *memory) object(key Key) client.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if found := s.state.find(key); found != nil {
		return found.object
	}
	return nil
}

// now is the time of a write, in whole seconds as objects have it.
func (s *memory) now() metav1.Time { return metav1.NewTime(s.options.Now().Truncate(time.Second)) }
