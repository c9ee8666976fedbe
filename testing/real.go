package testing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/differential"
	"github.com/espalier-dev/espalier/testing/internal/mapped"
	"github.com/espalier-dev/espalier/testing/internal/realserver"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// realServer is a real API server on which a faithful row runs.
type realServer struct {
	client client.WithWatch
	// keep says that the row leaves behind what it has there.
	keep bool
	// differential says that the row runs in memory, and the server is compared with that.
	differential bool
}

// missingDefinition says what to do about a kind that a server does not serve.
const missingDefinition = "give its CustomResourceDefinition to Main of the package testing/apiserver, or install it"

// chooseServers makes the Server of each faithful config, or that of the flags, the one on which it works. With the
// flags it logs where that is.
func (r *caseRun) chooseServers(t *testing.T, row faithfulFields) {
	t.Helper()
	for _, c := range append(r.inOrder(), r.expect) {
		switch {
		case c.Server != nil && c.faithful:
			c.real, c.Server = &realServer{client: c.Server}, nil
		case c.Server == nil && row.faithful && realserver.Where() != "":
			c.chooseServerOfFlags(t, c.inMemoryAlone(row))
			if c == r.expect {
				realserver.RowRuns(c.inMemoryAlone(row))
			}
		}
	}
}

func (c *ExpectConfig) chooseServerOfFlags(t *testing.T, inMemoryAlone string) {
	t.Helper()
	if inMemoryAlone != "" {
		t.Logf("runs in memory alone%s: %s", c.suffix(), inMemoryAlone)
		return
	}
	server, keep, err := realserver.Client(c.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	c.real = &realServer{client: server, keep: keep, differential: realserver.Differential()}
	where := "on the API server"
	if c.real.differential {
		where = "in memory and on the API server"
	}
	t.Logf("runs %s%s, its replays in memory", where, c.suffix())
}

// inMemoryAlone says why the flags do not make a config of a row work on a real API server, empty if they do.
func (c *ExpectConfig) inMemoryAlone(row faithfulFields) string {
	switch {
	case !row.fault.isZero():
		return "it pins a Fault"
	case row.virtual:
		return "it runs in virtual time"
	case c.WithClientBuilder != nil:
		return "it has a WithClientBuilder"
	case len(c.WithReactors) > 0:
		return "it has reactors"
	case len(c.GivenAPIResources) > 0:
		return "it has GivenAPIResources"
	case len(c.GivenIndexes) > 0:
		return "it has GivenIndexes"
	default:
		return ""
	}
}

// newReal returns a real API server, on which the row finds what it would find in memory.
func (c *ExpectConfig) newReal(journal *recording.Journal) backend {
	s, hidden, problems := c.newStore()
	server := c.mapped(s, hidden)
	b := c.onStore(journal, onServer(s, server))
	b.problems = problems
	if err := giveStored(server, s); err != nil {
		b.problems = append(b.problems, err.Error())
	}
	g := &garbage{server: server}
	b.revision, b.close = server.Revision, g.closing(c.closing(server))
	b.settle = func() bool {
		g.collect(c.Scheme)
		return server.CatchUp()
	}
	return b
}

// newDifferential returns the faithful server in memory, whose answers are compared with those of a real one. If the
// given objects cannot be given there, the row runs in memory alone.
func (c *ExpectConfig) newDifferential(journal *recording.Journal) backend {
	b := c.newFaithful(journal)
	server := c.mapped(b.store, b.hidden)
	if len(b.problems) > 0 {
		return b
	}
	b.comparison = differential.New(server)
	if err := giveStored(server, b.store); err != nil {
		b.comparison.Note(fmt.Errorf("the server does not take what is given: %w", err))
		b.close = c.closing(server)
		return b
	}
	memory, real := c.inMemory(b.store, b.view), onServer(b.store, server)
	both := c.onStore(journal, clients{
		cached: b.comparison.Client(memory.cached, real.cached),
		live:   b.comparison.Client(memory.live, real.live),
		as: func(manager string) client.WithWatch {
			return b.comparison.Client(memory.as(manager), real.as(manager))
		},
		add:       real.add,
		resources: memory.resources,
	})
	b.client, b.reader, b.discovery, b.close = both.client, both.reader, both.discovery, c.closing(server)
	settle := b.settle
	b.settle = func() bool {
		before := b.store.Revision()
		seen := settle()
		if err := followCollector(server, b.store.Changes(before)); err != nil {
			b.comparison.Note(err)
		}
		server.CatchUp()
		return seen
	}
	return b
}

func (c *ExpectConfig) mapped(s *store.Store, hidden []store.Key) *mapped.Server {
	server := mapped.New(c.real.client, mapped.Options{
		Now: c.now, Revision: s.Revision(), Missing: missingDefinition,
	})
	server.Hide(hidden...)
	return server
}

func (c *ExpectConfig) closing(server *mapped.Server) func(context.Context) error {
	if c.real.keep {
		return func(context.Context) error { return nil }
	}
	return server.Close
}

// onServer returns the clients of a server. The store gives objects that are added what they lack.
func onServer(s *store.Store, server *mapped.Server) clients {
	as := func(manager string) client.WithWatch {
		return server.Client(mapped.ClientOptions{FieldManager: manager})
	}
	return clients{
		cached: server.Client(mapped.ClientOptions{FieldManager: store.DefaultManager, Cached: true}),
		live:   as(store.DefaultManager),
		as:     as,
		add: func(obj client.Object) error {
			before := s.Objects()
			if err := s.Give(obj); err != nil {
				return err
			}
			added, err := stored(s, func(obj client.Object) bool { return !slices.Contains(before, obj) })
			if err != nil {
				return err
			}
			return server.Give(context.Background(), added...)
		},
		resources: func() []*metav1.APIResourceList { return s.Resources() },
	}
}

// giveStored gives a server what a store has.
func giveStored(server *mapped.Server, s *store.Store) error {
	objs, err := stored(s, func(client.Object) bool { return true })
	if err != nil {
		return err
	}
	return server.Give(context.Background(), objs...)
}

// stored returns copies of objects of a store, with their managed fields.
func stored(s *store.Store, chosen func(client.Object) bool) ([]client.Object, error) {
	reader := s.Client(store.ClientOptions{})
	var objs []client.Object
	for _, obj := range s.Objects() {
		if !chosen(obj) {
			continue
		}
		u := &unstructured.Unstructured{}
		kind, err := apiutil.GVKForObject(obj, reader.Scheme())
		if err != nil {
			kind = obj.GetObjectKind().GroupVersionKind()
		}
		u.SetGroupVersionKind(kind)
		if err := reader.Get(context.Background(), client.ObjectKeyFromObject(obj), u); err != nil {
			return nil, err
		}
		objs = append(objs, u)
	}
	return objs, nil
}

// reportDifferences logs the first call of each config that a real server has answered in another way.
func (r *caseRun) reportDifferences(t *testing.T) {
	t.Helper()
	var rules []string
	for _, c := range append(r.inOrder(), r.expect) {
		comparison := c.made().comparison
		if comparison == nil {
			continue
		}
		if first, ok := comparison.First(); ok {
			t.Logf("differs from the server%s: %s", c.suffix(), strings.TrimSpace(first.String()))
			rules = append(rules, first.Rule())
		}
	}
	if len(rules) > 0 {
		realserver.RowDiffers(rules...)
	}
}
