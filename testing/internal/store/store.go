package store

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure a [Store].
type Options struct {
	// Scheme has the Go types whose kinds are served without a definition. Required; it is not changed.
	Scheme *runtime.Scheme
	// Resources are further kinds that are served.
	Resources []*metav1.APIResourceList
	// Mapper, unless nil, knows further kinds that are served, and is the REST mapper of the clients. It must not
	// change.
	Mapper meta.RESTMapper
	// Now is the time of writes; nil is the real time.
	Now func() time.Time
	// ManagedFields says that objects are always answered with their managed fields. By default an object is once
	// something was applied to it, or managed fields were sent or given with it: to compute them costs more than
	// anything else.
	ManagedFields bool
}

// Store has the objects of a cluster. It is safe for concurrent use.
type Store struct {
	options Options
	catalog *catalog

	mu       sync.RWMutex
	state    state
	watchers map[*watcher]struct{}
}

// New returns an empty store, in which the namespaces default, kube-system, kube-public and kube-node-lease exist.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Store{
		options: options,
		catalog: newCatalog(options),
		state:   newState(),
	}
	for _, name := range initialNamespaces {
		s.giveNamespace(name)
	}
	return s
}

// Fork returns a copy. A change of one of the two does not change the other. Watches stay with the original.
func (s *Store) Fork() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Store{options: s.options, catalog: s.catalog, state: s.state.fork()}
}

// SetNow sets the time of the writes that follow, such as that of a run in a fork; nil is the real time.
func (s *Store) SetNow(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now == nil {
		now = time.Now
	}
	s.options.Now = now
}

// Key names an object.
type Key struct {
	Kind            schema.GroupKind
	Namespace, Name string
}

// String returns the kind, without its group, and the name, such as "ConfigMap ns/one".
func (k Key) String() string { return k.Kind.Kind + " " + slashed(k.Namespace, k.Name) }

// Change is one change of a store.
type Change struct {
	// Revision is that of the store after the change. It is the resource version of After.
	Revision int64
	Key      Key
	// Before and After are the object before and after the change, nil if there was or is none. They must not be
	// changed, and have no managed fields.
	Before, After client.Object
	// Manager is the field manager who made the change; empty for the control plane itself.
	Manager string
}

// Revision returns the revision of the last change. It is never 0.
func (s *Store) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.revision
}

// Changes returns the changes after a revision, oldest first.
func (s *Store) Changes(since int64) []Change {
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
func (s *Store) Objects() []client.Object {
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

// now is the time of a write, in whole seconds as objects have it.
func (s *Store) now() metav1.Time { return metav1.NewTime(s.options.Now().Truncate(time.Second)) }
