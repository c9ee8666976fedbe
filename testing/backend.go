package testing

import (
	"context"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/memserver"
	"github.com/espalier-dev/espalier/internal/testenv/store"
	"github.com/espalier-dev/espalier/testing/internal/recording"
)

// backend is the API server that a config works with. There are three: the one in memory that is compatible with tables
// of older versions (compat.go), the faithful one in memory (faithful.go), and a real one (live.go).
type backend struct {
	// client reads as from a cache. Reader reads past it, and has no journal.
	client, reader *recording.Client
	discovery      discovery.DiscoveryInterface
	// fake is the fake client behind client, and server what is behind it. They are nil unless the back end is the
	// compatible one.
	fake   client.Client
	server *memserver.Server
	// store is the faithful back end, and view what its client sees of it. They are nil in others.
	store *store.Store
	view  *store.View
	// close ends the use.
	close func(ctx context.Context) error
	// problems are what is wrong with the given state.
	problems []string
}

// newBackend returns the API server of the config, with the given objects.
func (c *ExpectConfig) newBackend(journal *recording.Journal) backend {
	if c.Server != nil {
		return c.newLive(journal)
	}
	if c.faithful {
		return c.newFaithful(journal)
	}
	return c.newCompat(journal)
}
