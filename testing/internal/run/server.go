package run

import (
	"context"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// Server is the API server that a config works with. There are: fake clients of controller-runtime (fakeclient.go), the
// API server of Kubernetes in the process (apiserver.go), and one that the test runs (live.go).
type Server struct {
	// Client reads as from a cache. Reader reads past it, and has no journal.
	Client, Reader *recording.Client
	Discovery      discovery.DiscoveryInterface
	// Fake is the fake client behind Client. It is nil on another.
	Fake client.Client
	// Store is what the API server of Kubernetes has. It is nil on another.
	Store *store.Store
	// Revision is higher after each change. Settle lets the control plane act and the client see what there is, and
	// reports whether that is something new. They are nil on a fake client.
	Revision func() int64
	Settle   func() bool
	// Close ends the use.
	Close func(ctx context.Context) error
	// Problems are what is wrong with the given state.
	Problems []string

	// view is what Client sees of a Store, and hidden are the objects that it does not show at first.
	view   *store.View
	hidden []store.Key
}

// start returns the API server of the config, with the given objects.
func (g Given) start(journal *recording.Journal) Server {
	switch {
	case g.Server != nil:
		return g.live(journal)
	case g.APIServer:
		return g.onAPIServer(journal)
	default:
		return g.onFakeClient(journal)
	}
}
