package fidelity

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// realServer is an API server with controllers that collect garbage and empty namespaces.
type realServer struct{ config *rest.Config }

func (s realServer) Connect() (client.WithWatch, error) {
	return client.NewWithWatch(s.config, client.Options{Scheme: Scheme()})
}

func (realServer) Patience() time.Duration { return 2 * time.Minute }

func (s realServer) Eventually(ctx context.Context, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, s.Patience())
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return done(), nil
	}) == nil
}

// rows is a server as rows have it: a store, whose controllers work when a check waits for them.
type rows struct{ *store.Store }

// newRows returns a function that makes servers with [Definitions], each a fork of one.
func newRows(t *testing.T) func() (Cluster, error) {
	t.Helper()
	s := store.New(store.Options{Scheme: newServerScheme(), ManagedFields: true})
	for _, definition := range Definitions() {
		if err := s.Give(definition); err != nil {
			t.Fatal(err)
		}
	}
	return func() (Cluster, error) { return rows{s.Fork()}, nil }
}

func (r rows) Connect() (client.WithWatch, error) {
	return r.Client(store.ClientOptions{Scheme: Scheme()}), nil
}

func (r rows) Eventually(_ context.Context, done func() bool) bool {
	for r.CollectGarbage() {
	}
	return done()
}

func (rows) Patience() time.Duration { return time.Minute }
