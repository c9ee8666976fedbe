package server_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/fidelity"
	"github.com/espalier-dev/espalier/testing/simulation/internal/controllers"
	"github.com/espalier-dev/espalier/testing/simulation/internal/server"
)

// TestFidelity compares what the server answers with what a real API server answered. There are controllers that
// collect garbage and empty namespaces, as there were beside that.
func TestFidelity(t *testing.T) {
	t.Parallel()
	run(t, server.Options{Definitions: fidelity.Definitions()}, func(c cluster) {
		running, err := controllers.Start(c.ctx, c.config, controllers.Options{
			NoWorkloads: true, Failed: func(err error) { c.Error(err) },
		})
		c.must(err)
		defer running.Stop()
		answers := fidelity.Ask(c.ctx, 1, func() (fidelity.Cluster, error) { return simulated{c}, nil })
		fidelity.Compare(c.T, fidelity.Recorded(), answers, knownDifferences)
	})
}

// simulated is a server for checks.
type simulated struct{ cluster }

var _ fidelity.Cluster = simulated{}

// Connect implements [fidelity.Cluster].
func (s simulated) Connect() (client.WithWatch, error) {
	return client.NewWithWatch(s.config, client.Options{Scheme: fidelity.Scheme()})
}

// Eventually implements [fidelity.Cluster].
func (s simulated) Eventually(ctx context.Context, done func() bool) bool {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, s.Patience(), true,
		func(context.Context) (bool, error) { return done(), nil }) == nil
}

// Patience implements [fidelity.Cluster].
func (simulated) Patience() time.Duration { return time.Minute }
