package run

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/testing/internal/apiresources"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// onAPIServer returns a store, which answers as an API server does. The reader sees all of it. What the APIGivenObjects
// add is what the cache behind the client has not seen yet.
func (g Given) onAPIServer(journal *recording.Journal) Server {
	s, hidden, problems := g.NewStore()
	view := store.NewView()
	view.Hide(hidden...)
	b := g.onStore(journal, g.inMemory(s, view))
	b.Store, b.view, b.hidden, b.Problems = s, view, hidden, problems
	b.Revision = s.Revision
	b.Settle = func() bool {
		s.CollectGarbage()
		return view.CatchUp()
	}
	return b
}

// inMemory returns the clients of a store.
func (g Given) inMemory(s *store.Store, view *store.View) Clients {
	if g.PastCache {
		view = nil
	}
	return Clients{
		Cached: s.Client(store.ClientOptions{View: view, Indexes: g.Indexes}),
		Live:   s.Client(store.ClientOptions{}),
		As: func(manager string) client.WithWatch {
			return s.Client(store.ClientOptions{FieldManager: manager})
		},
		Add:       func(obj client.Object) error { return s.Give(obj) },
		Resources: s.Resources,
	}
}

// Clients are what clients of a store are made of.
type Clients struct {
	Cached client.WithWatch
	Live   client.WithWatch
	// As returns a client of somebody else, whose calls are not recorded.
	As func(manager string) client.WithWatch
	// Add stores a given object.
	Add func(obj client.Object) error
	// Resources are what discovery lists.
	Resources func() []*metav1.APIResourceList
}

// onStore returns the back end that records the calls to a store.
func (g Given) onStore(journal *recording.Journal, of Clients) Server {
	record := func(inner client.WithWatch, journal *recording.Journal) *recording.Client {
		r := recording.NewClient(duck.NewDuckAwareClientWrapper(inner), recording.Options{
			Add: func(obj client.Object) error {
				stored, err := Stored(obj, g.Scheme)
				if err != nil {
					return err
				}
				return of.Add(stored)
			},
			As:    func(manager string) client.Client { return duck.NewDuckAwareClientWrapper(of.As(manager)) },
			Inner: inner, Live: true, Journal: journal,
		})
		g.addReactors(r)
		return r
	}
	return Server{
		Client: record(of.Cached, journal), Reader: record(of.Live, nil),
		Discovery: apiresources.NewServerDiscovery(of.Resources),
		Close:     func(context.Context) error { return nil },
	}
}

// NewStore returns a store with all given objects, those that its cache has not seen, and what is wrong with the given
// state.
func (g Given) NewStore() (s *store.Store, hidden []store.Key, problems []string) {
	_, problems = apiresources.NewMapper(g.GivenAPIResources)
	s = store.New(store.Options{
		Scheme:        g.Scheme,
		Resources:     apiresources.Valid(g.GivenAPIResources),
		Now:           g.Now,
		ManagedFields: g.PastCache,
		NoNamespaces:  g.WithoutNamespaces,
	})
	var all []client.Object
	seen := sets.New[store.Key]()
	for i, obj := range g.GivenObjects {
		stored := mustBeGiven(obj, g.Scheme)
		if (i == g.Reconciled || g.isRequested(stored)) && stored.GetResourceVersion() == "" {
			stored.SetResourceVersion(objects.GivenVersion)
		}
		all = append(all, stored)
		if key, ok := g.storeKey(stored); ok {
			seen.Insert(key)
		}
	}
	for _, obj := range g.APIGivenObjects {
		stored := mustBeGiven(obj, g.Scheme)
		key, ok := g.storeKey(stored)
		if ok && seen.Has(key) {
			continue
		}
		all = append(all, stored)
		if ok {
			hidden = append(hidden, key)
		}
	}
	if err := s.Give(all...); err != nil {
		problems = append(problems, "the given objects cannot be stored: "+err.Error())
	}
	return s, slices.Clip(hidden), problems
}

func (g Given) isRequested(obj client.Object) bool {
	return g.Requested != nil && client.ObjectKeyFromObject(obj) == *g.Requested
}

func (g Given) storeKey(obj client.Object) (store.Key, bool) {
	kind, err := objects.KindOf(obj, g.Scheme)
	return store.Key{Kind: kind.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}, err == nil
}
