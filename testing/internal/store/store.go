package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/storage"
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
	// something was applied to it, or managed fields were sent or given with it.
	ManagedFields bool
	// NoNamespaces leaves out the namespaces that each cluster has.
	NoNamespaces bool
}

// Store has the objects of a cluster. It is safe for concurrent use.
type Store struct {
	options Options

	kept *storage.Storage

	mu  sync.Mutex
	now func() time.Time
	// served is what is served at the revision servedAt.
	served   *kinds
	servedAt int64
	// shown are the objects that are answered with their managed fields. The map is replaced, never changed.
	shown map[types.UID]bool
	// collected is the revision at which there was no garbage; 0 if that is not known.
	collected int64
}

// New returns an empty store. Resource versions that are made up for given objects are lower than its revision, as long
// as there are unused ones. So the first write usually has the version 1000, as in all worlds. The
// namespaces default, kube-system, kube-public and kube-node-lease exist there, unless the options leave them out.
func New(options Options) *Store {
	shared, err := server.Shared()
	if err != nil {
		panic(err) // No test can begin.
	}
	s := &Store{options: options, now: orRealTime(options.Now), served: newCatalog(options).undefined}
	base := shared.Worlds()
	if options.NoNamespaces {
		base = storage.New(storage.Options{Revision: base.Revision(), Retention: -1, BookmarkInterval: -1})
	}
	s.kept = base.Fork(s.time)
	s.servedAt = s.kept.Revision()
	if err := s.Give(s.initialNamespaces()...); err != nil {
		panic(err) // They are there.
	}
	return s
}

// initialNamespaces returns the namespaces that each world has, with the time of the store.
func (s *Store) initialNamespaces() []client.Object {
	created := metav1.NewTime(s.time().Truncate(time.Second))
	var all []client.Object
	for _, e := range s.kept.Entries("/namespaces/") {
		ns := s.served.object(e).DeepCopyObject().(client.Object)
		ns.SetCreationTimestamp(created)
		all = append(all, ns)
	}
	return all
}

func orRealTime(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// time is the clock of the storage.
func (s *Store) time() time.Time {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	return now()
}

// Fork returns a copy. A change of one of the two does not change the other. Watches stay with the original.
func (s *Store) Fork() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Store{
		options: s.options, now: s.now, served: s.served, servedAt: s.servedAt, shown: s.shown,
		collected: s.collected,
	}
	f.kept = s.kept.Fork(f.time)
	return f
}

// SetNow sets the time of the writes that follow, such as that of a run in a fork; nil is the real time.
func (s *Store) SetNow(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = orRealTime(now)
}

// kinds returns what is served now.
func (s *Store) kinds() *kinds {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision := s.kept.Revision(); revision != s.servedAt {
		changes := s.kept.Changes(s.servedAt)
		if slices.ContainsFunc(changes, func(c storage.Change) bool { return isDefinitionKey(entryOf(c).Key) }) {
			s.served = s.served.with(s.kept)
		}
		s.servedAt = revision
	}
	return s.served
}

// entryOf returns the entry after a change, or before it if the change removed the object.
func entryOf(c storage.Change) *storage.Entry {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// Key names an object.
type Key = registry.Key

func newKey(kind schema.GroupKind, namespace, name string) Key {
	return Key{Kind: kind, Namespace: namespace, Name: name}
}

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
	return s.kept.Revision()
}

// Changes returns the changes after a revision, oldest first.
func (s *Store) Changes(since int64) []Change {
	served := s.kinds()
	changes := s.kept.Changes(since)
	public := make([]Change, len(changes))
	for i, c := range changes {
		public[i] = Change{Revision: c.Revision, Key: keyOf(served.object(entryOf(c))), Manager: c.Writer}
		if c.Before != nil {
			public[i].Before = served.object(c.Before)
		}
		if c.After != nil {
			public[i].After = served.object(c.After)
		}
	}
	return public
}

// Objects returns all objects as they are stored, ordered by kind, namespace and name. They must not be changed.
func (s *Store) Objects() []client.Object {
	served := s.kinds()
	entries := s.kept.Entries("/")
	objects := make([]client.Object, len(entries))
	for i, e := range entries {
		objects[i] = served.object(e)
	}
	slices.SortStableFunc(objects, func(a, b client.Object) int { return compareKeys(keyOf(a), keyOf(b)) })
	return objects
}

// WithoutEffect says what is stored but does not do here what it does in a cluster, see [server.WithoutEffect].
func (s *Store) WithoutEffect() (notes []string) {
	served, kept := s.kinds(), s.kept
	admission := kept.Entries("/admissionregistration.k8s.io/")
	for _, e := range append(admission, kept.Entries(server.DefinitionsPrefix)...) {
		obj := served.object(e)
		if note := server.WithoutEffect(keyOf(obj).Kind, obj); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// Object returns an object as it is stored, nil if there is none. It must not be changed.
func (s *Store) Object(key Key) client.Object {
	return s.find(s.kinds(), key)
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Kind.Kind, b.Kind.Kind), strings.Compare(a.Kind.Group, b.Kind.Group),
		strings.Compare(a.Namespace+"/", b.Namespace+"/"), strings.Compare(a.Name, b.Name))
}

// show has an object answered with its managed fields from now on.
func (s *Store) show(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown[uid] {
		return
	}
	shown := maps.Clone(s.shown)
	if shown == nil {
		shown = map[types.UID]bool{}
	}
	shown[uid] = true
	s.shown = shown
}

// hideFields removes the managed fields of an object, unless they are answered.
func (s *Store) hideFields(obj metav1.Object) {
	fields := obj.GetManagedFields()
	if len(fields) == 0 || s.options.ManagedFields {
		return
	}
	for _, entry := range fields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			return
		}
	}
	s.mu.Lock()
	shown := s.shown[obj.GetUID()]
	s.mu.Unlock()
	if !shown {
		obj.SetManagedFields(nil)
	}
}

// slashed returns namespace/name, or the name alone.
func slashed(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func setVersion(obj client.Object, revision int64) {
	obj.SetResourceVersion(strconv.FormatInt(revision, 10))
}
