package testing

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

// newFaithful returns a store, which answers as an API server does. The reader sees all of it. What the APIGivenObjects
// add is what the cache behind the client has not seen yet.
func (c *ExpectConfig) newFaithful(journal *recording.Journal) backend {
	s, hidden, problems := c.newStore()
	view := store.NewView()
	view.Hide(hidden...)
	b := c.onStore(journal, c.inMemory(s, view))
	b.store, b.view, b.hidden, b.problems = s, view, hidden, problems
	b.revision = s.Revision
	b.settle = func() bool {
		s.CollectGarbage()
		return view.CatchUp()
	}
	return b
}

// inMemory returns the clients of a store.
func (c *ExpectConfig) inMemory(s *store.Store, view *store.View) clients {
	return clients{
		cached: s.Client(store.ClientOptions{View: view, Indexes: indexesOf(c.GivenIndexes, c.Scheme)}),
		live:   s.Client(store.ClientOptions{}),
		as: func(manager string) client.WithWatch {
			return s.Client(store.ClientOptions{FieldManager: manager})
		},
		add:       func(obj client.Object) error { return s.Give(obj) },
		resources: s.Resources,
	}
}

// clients are what clients of a store are made of.
type clients struct {
	cached client.WithWatch
	live   client.WithWatch
	// as returns a client of somebody else, whose calls are not recorded.
	as func(manager string) client.WithWatch
	// add stores a given object.
	add func(obj client.Object) error
	// resources are what discovery lists.
	resources func() []*metav1.APIResourceList
}

// onStore returns the back end that records the calls to a store.
func (c *ExpectConfig) onStore(journal *recording.Journal, of clients) backend {
	record := func(inner client.Client, journal *recording.Journal) *recording.Client {
		r := recording.NewClient(duck.NewDuckAwareClientWrapper(inner), recording.Options{
			Add: func(obj client.Object) error {
				stored, err := given(obj, c.Scheme)
				if err != nil {
					return err
				}
				return of.add(stored)
			},
			As:   func(manager string) client.Client { return duck.NewDuckAwareClientWrapper(of.as(manager)) },
			Live: true, Journal: journal,
		})
		c.addReactors(r)
		return r
	}
	return backend{
		client: record(of.cached, journal), reader: record(of.live, nil),
		discovery: apiresources.NewServerDiscovery(of.resources),
		close:     func(context.Context) error { return nil },
	}
}

// newStore returns a store with all given objects, those that its cache has not seen, and what is wrong with the given
// state.
func (c *ExpectConfig) newStore() (s *store.Store, hidden []store.Key, problems []string) {
	_, problems = apiresources.NewMapper(c.GivenAPIResources)
	s = store.New(store.Options{
		Scheme:    c.Scheme,
		Resources: apiresources.Valid(c.GivenAPIResources),
		Now:       c.now,
	})
	var all []client.Object
	seen := sets.New[store.Key]()
	for i, obj := range c.GivenObjects {
		stored := mustBeGiven(obj, c.Scheme)
		if (i == c.reconciled || c.isRequested(stored)) && stored.GetResourceVersion() == "" {
			stored.SetResourceVersion(objects.GivenVersion)
		}
		all = append(all, stored)
		if key, ok := c.storeKey(stored); ok {
			seen.Insert(key)
		}
	}
	for _, obj := range c.APIGivenObjects {
		stored := mustBeGiven(obj, c.Scheme)
		key, ok := c.storeKey(stored)
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

func (c *ExpectConfig) isRequested(obj client.Object) bool {
	return c.requested != nil && client.ObjectKeyFromObject(obj) == *c.requested
}

func (c *ExpectConfig) storeKey(obj client.Object) (store.Key, bool) {
	kind, err := objects.KindOf(obj, c.Scheme)
	return store.Key{Kind: kind.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}, err == nil
}
