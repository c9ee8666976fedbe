package server_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/fidelity"
	"github.com/espalier-dev/espalier/simulation/internal/controllers"
	"github.com/espalier-dev/espalier/simulation/internal/server"
)

// TestFidelity compares what the server answers with what a real API server answered. There are controllers that
// collect garbage and empty namespaces, as there were beside that.
func TestFidelity(t *testing.T) {
	t.Parallel()
	run(t, server.Options{Definitions: fidelity.Definitions()}, func(c cluster) {
		running, err := controllers.Start(c.ctx, c.config, controllers.Options{
			NoWorkloads: true, Failed: func(err error) { t.Error(err) },
		})
		c.must(err)
		defer running.Stop()
		answers := fidelity.Ask(c.ctx, 1, func() (fidelity.Cluster, error) { return simulated{c}, nil })
		fidelity.Compare(t, answers, knownDifferences)
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

// knownDifferences are the checks that the server answers otherwise than a real one, with the reasons.
var knownDifferences = map[string]string{
	"defaults: PersistentVolumeClaim": "the finalizer comes from an admission plug-in, and nobody would remove it",
	"defaults: Pod":                   "priority and tolerations come from admission plug-ins",

	"apply: owner reference without UID": newerLibrary,
	"metadata: invalid owner references": newerLibrary,
}

const newerLibrary = "the library that validates is newer than the server: it says metadata.ownerReferences[0].uid " +
	"instead of metadata.ownerReferences.uid"
