package testing

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/espalier-dev/espalier/testing/internal/differential"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var differentialFlag = flag.Bool("rtesting.differential", false,
	"make the calls of rows on a real API server, too, and fail the rows that it answers in another way")

// APIServer is a real API server for tests, such as an Environment of the package envtest of controller-runtime.
type APIServer interface {
	Start() (*rest.Config, error)
	Stop() error
}

// Main runs the tests of a package, and returns the exit code for os.Exit; m is a *testing.M. With the flag
// -rtesting.differential it starts the server, and each call of the rows of [NodeTests] and [RootTests] is made in
// memory and there. A row fails if an answer differs, so that a table tells whether the API server in memory is right
// about it:
//
//	func TestMain(m *testing.M) {
//		os.Exit(rtesting.Main(m, &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd"}}))
//	}
//
// What the server assigns is mapped to what the row assumes: UIDs, resource versions, and namespaces, so that rows that
// run in parallel share it. What it completes in given objects is no difference. Between the requests of a row garbage
// is collected there as in memory. These rows run in memory alone: those in VirtualTime, since a server answers in real
// time; those with reactors, GivenAPIResources or GivenIndexes; and those that pin a Fault. So do replays.
//
// The code is 1 if the server does not start, or if no row of the package was compared.
func Main(m interface{ Run() int }, server APIServer) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if !*differentialFlag {
		return m.Run()
	}
	config, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "-rtesting.differential: the API server does not start "+
			"(KUBEBUILDER_ASSETS is the folder with etcd and kube-apiserver):", err)
		_ = server.Stop() // Some of it may have started.
		return 1
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // Calls do not wait for each other.
	compared.use(config)
	code := m.Run()
	if compared.rows == 0 {
		fmt.Fprintln(os.Stderr, "-rtesting.differential: no row of a NodeTests or RootTests was compared")
		code = max(code, 1)
	}
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// compared is the API server of Main.
var compared comparedServer

type comparedServer struct {
	mu      sync.Mutex
	config  *rest.Config
	clients map[*runtime.Scheme]client.WithWatch
	// rows counts those whose calls were made there.
	rows int
}

func (s *comparedServer) use(config *rest.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.clients, s.rows = config, map[*runtime.Scheme]client.WithWatch{}, 0
}

// client returns a client, which all rows with the scheme share.
func (s *comparedServer) client(scheme *runtime.Scheme) (client.WithWatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		return nil, fmt.Errorf("the flag -rtesting.differential needs a TestMain that calls rtesting.Main")
	}
	s.rows++
	if c, ok := s.clients[scheme]; ok {
		return c, nil
	}
	c, err := client.NewWithWatch(s.config, client.Options{Scheme: scheme})
	if err == nil {
		s.clients[scheme] = c
	}
	return c, err
}

// chooseServers says for each faithful config with which real API server it is compared: with its Server, or with that
// of Main.
func (r *caseRun) chooseServers(t *testing.T, row row) {
	t.Helper()
	for _, c := range append(r.inOrder(), r.expect) {
		if !c.faithful {
			continue
		}
		c.real, c.Server = c.Server, nil
		if c.real != nil || !*differentialFlag {
			continue
		}
		if reason := c.inMemoryAlone(row); reason != "" {
			t.Logf("runs in memory alone%s: %s", c.suffix(), reason)
			continue
		}
		var err error
		if c.real, err = compared.client(c.Scheme); err != nil {
			t.Fatal(err)
		}
	}
}

// inMemoryAlone says why a config of a row is not compared with the API server of Main, empty if it is.
func (c *ExpectConfig) inMemoryAlone(row row) string {
	switch {
	case !row.fault.isZero():
		return "it pins a Fault"
	case row.virtual:
		return "it runs in virtual time"
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

// newDifferential returns the faithful server in memory, whose answers are compared with those of a real one.
func (c *ExpectConfig) newDifferential(journal *recording.Journal) backend {
	b := c.newFaithful(journal)
	if len(b.problems) > 0 {
		return b
	}
	server := differential.New(c.real)
	server.Hide(b.hidden...)
	give(server, b.store, nil)
	memory := c.inMemory(b.store, b.view)
	both := c.onStore(journal, clients{
		cached: server.Client(memory.cached, store.DefaultManager, true),
		live:   server.Client(memory.live, store.DefaultManager, false),
		as: func(manager string) client.WithWatch {
			return server.Client(memory.as(manager), manager, false)
		},
		add: func(obj client.Object) error {
			before := b.store.Objects()
			err := memory.add(obj)
			give(server, b.store, before)
			return err
		},
		resources: memory.resources,
	})
	b.comparison, b.close = server, server.Close
	b.client, b.reader, b.discovery = both.client, both.reader, both.discovery
	settle := b.settle
	b.settle = func() bool {
		before := b.store.Revision()
		seen := settle()
		server.Follow(b.store.Changes(before))
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

// reportDifferences fails the test for the first call of each config that a real API server has answered in another
// way.
func (r *caseRun) reportDifferences(t *testing.T) {
	t.Helper()
	for _, c := range append(r.inOrder(), r.expect) {
		if server := c.made().comparison; server != nil {
			if first, ok := server.First(); ok {
				t.Errorf("the real API server answers otherwise%s: %s", c.suffix(), first)
			}
		}
	}
}
