package fidelity

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// memory is a store.
type memory struct{ *store.Store }

var _ Cluster = memory{}

// NewStores returns a function that makes stores with [Definitions]. The options have no scheme.
func NewStores(options store.Options) (func() (Cluster, error), error) {
	options.Scheme = serverScheme()
	s := store.New(options)
	for _, definition := range Definitions() {
		if err := s.Give(definition); err != nil {
			return nil, err
		}
	}
	return func() (Cluster, error) { return memory{s.Fork()}, nil }, nil
}

// Connect implements [Cluster].
func (m memory) Connect() (client.WithWatch, error) {
	return m.Client(store.ClientOptions{Scheme: clientScheme()}), nil
}

// Eventually implements [Cluster].
func (m memory) Eventually(_ context.Context, done func() bool) bool {
	for m.CollectGarbage() {
	}
	return done()
}

// Patience implements [Cluster].
func (memory) Patience() time.Duration { return time.Minute }
