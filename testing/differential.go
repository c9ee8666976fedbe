package testing

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	for _, c := range r.all() {
		if !c.how.Faithful {
			continue
		}
		c.how.Real, c.Server = c.Server, nil
		if c.how.Real != nil || !*differentialFlag {
			continue
		}
		if reason := c.inMemoryAlone(row); reason != "" {
			t.Logf("runs in memory alone%s: %s", c.suffix(), reason)
			continue
		}
		var err error
		if c.how.Real, err = compared.client(c.Scheme); err != nil {
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
	case c.WithoutNamespaces:
		return "it has no namespaces"
	default:
		return ""
	}
}

// reportDifferences fails the test for the first call of each config that a real API server has answered in another
// way.
func (r *caseRun) reportDifferences(t *testing.T) {
	t.Helper()
	for _, c := range r.all() {
		if server := c.made().Comparison; server != nil {
			if first, ok := server.First(); ok {
				t.Errorf("the real API server answers otherwise%s: %s", c.suffix(), first)
			}
		}
	}
}
