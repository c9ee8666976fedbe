package run

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/differential"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// differential returns the faithful server in memory, whose answers are compared with those of a real one.
func (g Given) differential(journal *recording.Journal) Server {
	b := g.faithful(journal)
	if len(b.Problems) > 0 {
		return b
	}
	server := differential.New(g.Real)
	server.Hide(b.hidden...)
	give(server, b.Store, nil)
	memory := g.inMemory(b.Store, b.view)
	both := g.onStore(journal, Clients{
		Cached: server.Client(memory.Cached, store.DefaultManager, true),
		Live:   server.Client(memory.Live, store.DefaultManager, false),
		As: func(manager string) client.WithWatch {
			return server.Client(memory.As(manager), manager, false)
		},
		Add: func(obj client.Object) error {
			before := b.Store.Objects()
			err := memory.Add(obj)
			give(server, b.Store, before)
			return err
		},
		Resources: memory.Resources,
	})
	b.Comparison, b.Close = server, server.Close
	b.Client, b.Reader, b.Discovery = both.Client, both.Reader, both.Discovery
	settle := b.Settle
	b.Settle = func() bool {
		before := b.Store.Revision()
		seen := settle()
		server.Follow(b.Store.Changes(before))
		server.CatchUp()
		return seen
	}
	return b
}

// give gives a server what a store has, but for the objects that it had before, with their managed fields.
func give(server *differential.Server, s *store.Store, before []client.Object) {
	reader := s.Client(store.ClientOptions{})
	var objs []client.Object
	for _, obj := range s.Objects() {
		if slices.Contains(before, obj) {
			continue
		}
		u := &unstructured.Unstructured{}
		kind, err := apiutil.GVKForObject(obj, reader.Scheme())
		if err != nil {
			kind = obj.GetObjectKind().GroupVersionKind()
		}
		u.SetGroupVersionKind(kind)
		if err := reader.Get(context.Background(), client.ObjectKeyFromObject(obj), u); err != nil {
			server.Note(err)
			continue
		}
		objs = append(objs, u)
	}
	server.Give(context.Background(), objs...)
}
