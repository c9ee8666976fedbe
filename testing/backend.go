package testing

import (
	"context"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/differential"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

// backend is the API server that a config works with. There are: the one in memory that is compatible with tables of
// older versions (compat.go), the faithful one in memory (faithful.go), the same compared with a real one
// (differential.go), and a real one as tables of older versions know it (live.go).
type backend struct {
	// client reads as from a cache. Reader reads past it, and has no journal.
	client, reader *recording.Client
	discovery      discovery.DiscoveryInterface
	// fake is the fake client behind client. It is nil unless the back end is the compatible one.
	fake client.Client
	// store is the faithful back end, and view what its client sees of it. They are nil in others.
	store *store.Store
	view  *store.View
	// hidden are the objects that the view hides at first.
	hidden []store.Key
	// revision is higher after each change. Settle lets the control plane act and the client see what there is, and
	// reports whether that is something new. They are nil for a compatible back end.
	revision func() int64
	settle   func() bool
	// comparison has what a real API server has answered in another way; nil without one.
	comparison *differential.Server
	// close ends the use.
	close func(ctx context.Context) error
	// problems are what is wrong with the given state.
	problems []string
}

// newBackend returns the API server of the config, with the given objects.
func (c *ExpectConfig) newBackend(journal *recording.Journal) backend {
	switch {
	case c.Server != nil:
		return c.newLive(journal)
	case c.real != nil:
		return c.newDifferential(journal)
	case c.faithful:
		return c.newFaithful(journal)
	default:
		return c.newCompat(journal)
	}
}
