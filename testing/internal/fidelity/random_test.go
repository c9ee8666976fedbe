package fidelity

import (
	"flag"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first random sequence of calls")
	rounds = flag.Uint64("rounds", 20, "how many random sequences of calls are tried")
)

// TestRandomCalls shows that a real API server and the store answer random calls alike.
func TestRandomCalls(t *testing.T) {
	t.Parallel()
	server := realServer{plane.Config(t)}
	newStore := memories(t, store.Options{ManagedFields: true})
	var wg sync.WaitGroup
	running := make(chan struct{}, 4)
	for round := *seed; round < *seed+*rounds; round++ {
		running <- struct{}{}
		wg.Go(func() {
			defer func() { <-running }()
			CompareRandomCalls(t, round, func() (Cluster, error) { return server, nil }, newStore)
		})
	}
	wg.Wait()
}
