package server_test

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
	"github.com/espalier-dev/espalier/testing/internal/fidelity"
	"github.com/espalier-dev/espalier/testing/internal/server"
	realtime "github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// onBoth runs a test with a server in a bubble, and with one that is reached by TLS, in real time. Beside each are
// controllers that collect garbage and empty namespaces, as there were beside the API server that was recorded.
func onBoth(t *testing.T, definitions []*apiextensionsv1.CustomResourceDefinition, test func(c cluster)) {
	t.Parallel()
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		run(t, server.Options{Definitions: definitions}, func(c cluster) {
			running, err := controllers.Start(c.ctx, c.config, controllers.Options{
				NoWorkloads: true, Failed: func(err error) { c.Error(err) },
			})
			c.must(err)
			defer running.Stop()
			test(c)
		})
	})
	t.Run("over TLS", func(t *testing.T) {
		t.Parallel()
		env := &realtime.Environment{CRDs: definitions}
		config, err := env.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := env.Stop(); err != nil {
				t.Error(err)
			}
		}()
		test(cluster{T: t, WithWatch: newClient(t, config), config: config, ctx: t.Context()})
	})
}

// TestFidelity compares what the server answers with what a real API server answered.
func TestFidelity(t *testing.T) {
	onBoth(t, fidelity.Definitions(), func(c cluster) {
		answers := fidelity.Ask(c.ctx, 1, func() (fidelity.Cluster, error) { return simulated{c}, nil })
		fidelity.Compare(c.T, fidelity.Recorded(), answers, nil)
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
