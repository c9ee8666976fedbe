package server_test

import (
	"flag"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/fidelity"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/store"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first random sequence of calls")
	rounds = flag.Uint64("rounds", 20, "how many random sequences of calls are tried")
)

// TestRandomCalls compares what the server answers random calls with what package store answers. Another test makes the
// same calls to a real API server and the store.
func TestRandomCalls(t *testing.T) {
	t.Parallel()
	run(t, server.Options{Definitions: fidelity.Definitions()}, func(c cluster) {
		newStore, err := fidelity.NewStores(store.Options{ManagedFields: true})
		c.must(err)
		newServer := func() (fidelity.Cluster, error) { return simulated{c}, nil }
		for round := *seed; round < *seed+*rounds; round++ {
			fidelity.CompareRandomCalls(c.T, round, newStore, newServer)
		}
	})
}
