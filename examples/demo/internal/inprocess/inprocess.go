// Package inprocess has the demos take place on clusters in the process.
package inprocess

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/testenv/demo"
	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// Start starts a cluster whose workloads nobody runs: steps play the part of those who do.
func Start(context.Context) (demo.Cluster, error) {
	running := inProcess{&cluster.Environment{NoWorkloads: true}}
	if _, err := running.Environment.Start(); err != nil {
		return nil, err
	}
	return running, nil
}

type inProcess struct{ *cluster.Environment }

// Config implements [demo.Cluster].
func (c inProcess) Config() *rest.Config { return withoutRateLimit(c.Environment.Config) }

// User implements [demo.Cluster].
func (c inProcess) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.AddUser(cluster.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, err
	}
	return withoutRateLimit(user.Config()), nil
}

// withoutRateLimit returns a copy without a rate limit: the demo waits for the operator alone.
func withoutRateLimit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	return config
}

// Existing implements [demo.Cluster].
func (inProcess) Existing() bool { return false }
