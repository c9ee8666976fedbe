package memserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
)

// Server keeps objects as an API server does. It is safe for concurrent use. It copies the objects that it takes and
// returns, so callers may change them. The zero value is not usable; see [New].
type Server struct {
	// public is the scheme of the test, private the copy that the fake client and the store work with. The copy is read
	// under the fake client's lock only, in calls that come through that client.
	public   *runtime.Scheme
	private  *schemeCopy
	onStore  []func(schema.GroupVersionResource, client.Object)
	eager    bool
	fields   fieldManagers
	applying currentApply

	mu       sync.RWMutex
	tables   map[schema.GroupVersionResource]table
	versions map[schema.GroupVersionResource]int64
	watchers map[schema.GroupVersionResource][]*watcher
}

var _ clientgotesting.ObjectTracker = (*Server)(nil)

// Option changes how a [Server] behaves.
type Option func(*Server)

// OnStore calls f with each object that is stored, given ones included, in the order of the writes. It must neither
// change the object nor call the server.
func OnStore(f func(resource schema.GroupVersionResource, obj client.Object)) Option {
	return func(s *Server) { s.onStore = append(s.onStore, f) }
}

// WithManagedFields makes every write keep the managed fields current. By default those of an object are computed when
// something is applied to it.
func WithManagedFields() Option {
	return func(s *Server) { s.eager = true }
}

// New returns an empty server for the types of scheme, which it does not change. Close it to save work for the next
// one.
func New(scheme *runtime.Scheme, options ...Option) *Server {
	private := acquire(scheme)
	s := &Server{
		public:   scheme,
		private:  private,
		fields:   fieldManagers{scheme: private.Scheme, managers: map[schema.GroupVersionKind]*fieldmanager.Manager{}},
		tables:   map[schema.GroupVersionResource]table{},
		versions: map[schema.GroupVersionResource]int64{},
		watchers: map[schema.GroupVersionResource][]*watcher{},
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Close makes the copy of the scheme available to another server. This one, and its clients, must not be used any more.
func (s *Server) Close() { s.private.release() }

// Add stores an object, or the items of a list, as if it had always been there. An object that is
// already stored is refused with AlreadyExists. The resource is guessed from the kind; an object whose Go type is
// registered for several kinds is stored under each.
func (s *Server) Add(obj runtime.Object) error {
	if meta.IsListType(obj) {
		items, err := meta.ExtractList(obj)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := s.Add(item); err != nil {
				return err
			}
		}
		return nil
	}
	given, err := asObject(obj)
	if err != nil {
		return err
	}
	kinds, err := s.kindsOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range kinds {
		gvr, _ := meta.UnsafeGuessKindToResource(kind)
		if gvr.Version == runtime.APIVersionInternal {
			gvr.Version = ""
		}
		if s.find(gvr, given.GetNamespace(), given.GetName()) != nil {
			return apierrors.NewAlreadyExists(gvr.GroupResource(), given.GetName())
		}
		next := copyOf(given)
		r := &record{object: next}
		if entries := next.GetManagedFields(); entries == nil {
			r.history = []revision{{next, fieldmanager.BeforeFirstApply}}
		} else if fields, err := fieldmanager.Given(entries); err == nil {
			// Tables have always accepted objects with invalid managed fields. They are taken for none.
			r.fields = fields
		}
		s.put(gvr, r, watch.Added)
	}
	return nil
}

func (s *Server) kindsOf(obj runtime.Object) ([]schema.GroupVersionKind, error) {
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok && partial.APIVersion != "" {
		return []schema.GroupVersionKind{partial.GroupVersionKind()}, nil
	}
	kinds, _, err := s.public.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%T is registered for no kind", obj)
	}
	return kinds, nil
}

// Get returns a copy of an object, or NotFound.
func (s *Server) Get(gvr schema.GroupVersionResource, ns, name string, _ ...metav1.GetOptions) (runtime.Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.find(gvr, ns, name); r != nil {
		return r.object.DeepCopyObject(), nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

// List returns the objects of a namespace, or of all if it is empty, ordered by namespace and name. They are the stored
// ones, which must not be changed: the fake client decodes their JSON into the list that its caller wants.
func (s *Server) List(
	gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, ns string, _ ...metav1.ListOptions,
) (runtime.Object, error) {
	list := &metav1.List{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	s.mu.RLock()
	defer s.mu.RUnlock()
	list.ResourceVersion = strconv.FormatInt(s.versions[gvr]+1, 10)
	for _, r := range s.tables[gvr].in(ns) {
		list.Items = append(list.Items, runtime.RawExtension{Object: r.object})
	}
	return list, nil
}

// All returns copies of all objects of a resource, ordered by namespace and name.
func (s *Server) All(gvr schema.GroupVersionResource) []client.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var objects []client.Object
	for _, r := range s.tables[gvr].in("") {
		objects = append(objects, copyOf(r.object))
	}
	return objects
}

// Resources returns the resources that have, or had, objects. They are in no particular order.
func (s *Server) Resources() []schema.GroupVersionResource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.tables))
}

// Watch starts a watch of a namespace, or of all if it is empty. As with client-go's tracker, it starts with the next
// write. Given options, it starts with all objects written since their resource version, which is the version of a
// list, or with all objects if they have none. The caller has to stop it.
func (s *Server) Watch(
	gvr schema.GroupVersionResource, ns string, opts ...metav1.ListOptions,
) (watch.Interface, error) {
	since := int64(-1)
	if len(opts) > 0 {
		since = 0
		if rv := opts[0].ResourceVersion; rv != "" {
			var err error
			if since, err = strconv.ParseInt(rv, 10, 64); err != nil {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", rv, err))
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := newWatcher(ns, func(w *watcher) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers[gvr] = slices.DeleteFunc(s.watchers[gvr], func(other *watcher) bool { return other == w })
	})
	s.watchers[gvr] = append(s.watchers[gvr], w)
	if since >= 0 {
		for _, r := range s.tables[gvr].in(ns) {
			if r.version > since {
				w.send(watch.Event{Type: watch.Added, Object: r.object.DeepCopyObject()})
			}
		}
	}
	return w, nil
}

// IsWatchListSemanticsUnSupported makes reflectors list before they watch.
func (s *Server) IsWatchListSemanticsUnSupported() bool { return true }

// find returns the record of an object, nil if there is none. The caller holds the lock.
func (s *Server) find(gvr schema.GroupVersionResource, ns, name string) *record {
	return s.tables[gvr][types.NamespacedName{Namespace: ns, Name: name}]
}

// put stores a record and notifies the watchers. The caller holds the lock.
func (s *Server) put(gvr schema.GroupVersionResource, r *record, event watch.EventType) {
	if s.tables[gvr] == nil {
		s.tables[gvr] = table{}
	}
	s.versions[gvr]++
	r.version = s.versions[gvr] + 1
	s.tables[gvr][types.NamespacedName{Namespace: r.object.GetNamespace(), Name: r.object.GetName()}] = r
	for _, f := range s.onStore {
		f(gvr, r.object)
	}
	s.notify(gvr, r, event)
}

// remove forgets a record and notifies the watchers. The caller holds the lock.
func (s *Server) remove(gvr schema.GroupVersionResource, r *record) {
	s.versions[gvr]++
	delete(s.tables[gvr], types.NamespacedName{Namespace: r.object.GetNamespace(), Name: r.object.GetName()})
	s.notify(gvr, r, watch.Deleted)
}

func (s *Server) notify(gvr schema.GroupVersionResource, r *record, event watch.EventType) {
	for _, w := range s.watchers[gvr] {
		if w.wants(r.object.GetNamespace()) {
			w.send(watch.Event{Type: event, Object: r.object.DeepCopyObject()})
		}
	}
}

// kindOf returns the kind under which an object is written.
func (s *Server) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, s.private.Scheme)
}
