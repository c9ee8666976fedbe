// Package clusters makes and keeps clients for the clusters and identities that components are deployed with.
package clusters

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity is where and as whom a component is deployed.
type Identity struct {
	// KubeConfig is that of another cluster; empty for the cluster of the operator.
	KubeConfig []byte
	// User and Groups are whom to impersonate; none if empty.
	User   string
	Groups []string
}

// Cluster is a cluster seen with an identity.
type Cluster struct {
	// Config is what requests are made with.
	Config *rest.Config
	// Client reads past any cache. Its REST mapper is shared by all who use this Cluster.
	Client client.Client
}

// Pool keeps one [Cluster] for each identity.
type Pool struct {
	// Home is the config of the operator's own cluster.
	Home *rest.Config
}

// Get returns the cluster for an identity.
func (p *Pool) Get(ctx context.Context, identity Identity) (*Cluster, error) {
	return nil, nil
}
