// Package clusters makes and keeps clients for the clusters and identities that components are deployed with.
//
// The life of a client: [Pool.Get] (clusters.go) looks the [Identity] up. The first time it reads the kubeconfig
// (kubeconfig.go), adds impersonation and the time limit of requests (deadline.go), and makes the HTTP client, the REST
// mapper and the client (connect.go). The transport knows whether the cluster answers (reachability.go). The mapper and
// the client can be reset together when a type turns out to be served elsewhere (resettable.go). A later Get finds the
// same [Cluster], and drops clusters that were not asked for during 15 minutes.
package clusters

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity names a cluster, and the user as whom a component is deployed to it.
type Identity struct {
	// KubeConfig leads to another cluster. If it is empty, the cluster is the operator's own.
	KubeConfig []byte
	// User and Groups are impersonated unless they are empty. In another cluster, the user of the kubeconfig
	// impersonates them. Groups need a user; their order does not matter.
	User   string
	Groups []string
}

// Cluster is a cluster seen with an identity. It is safe for concurrent use, and stays usable after the [Pool] has
// dropped it.
type Cluster struct {
	// ID identifies the cluster among those of one [Pool]. Two clusters with the same ID can replace each other, also
	// if the pool dropped one and made it anew. It shows nothing of the identity, and differs from process to process.
	ID string
	// Config is the configuration of all requests. It must not be changed.
	Config *rest.Config
	// HTTPClient belongs to Config: a client made with both shares the connections of the cluster.
	HTTPClient *http.Client
	// Client reads past any cache. All users of this Cluster share its REST mapper, which asks the API server for all
	// types, with two requests, when it does not know one. It also learns from definitions (served.Discoverer). It
	// trusts what it knows until it is reset (MaybeResetRESTMapper of apimachinery). A reset makes the client forget as
	// well where types are served. Its scheme has the types of client-go, CustomResourceDefinitions, and Pool.Schemes.
	Client client.Client

	// Reachability says whether the cluster answers. It is nil for the operator's own.
	Reachability *Reachability

	discovery discovery.DiscoveryInterface
	// dropped is called when the pool drops the cluster.
	dropped func()
}

// Discovery returns a client that asks the API server for what it serves, each time.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.discovery }

// Pool keeps one [Cluster] for each identity, until it was not asked for during 15 minutes. It is safe for concurrent
// use. It must not be copied after first use.
//
// It has no goroutines: clusters are dropped while Get is called, about once a minute. A pool that nobody asks keeps
// what it has, and grows no more. The idle connections of a dropped cluster with a kubeconfig are closed. Connections
// that are idle for 90 seconds are closed in any case, so nothing stays open in a pool that nobody asks.
//
// A request that takes longer than 30 seconds fails. If Home has a timeout of its own, that is the limit for the
// operator's cluster. Watches have no limit. The rate of requests is not limited either, unless Home limits it for the
// operator's cluster: the API server defends itself. All requests count in the metrics of controller-runtime.
type Pool struct {
	// Home is the config of the operator's own cluster. It must not be changed after first use. It is required for
	// identities without a kubeconfig. Those with a kubeconfig take nothing from it but the user agent.
	Home *rest.Config
	// Schemes have types that the clients know besides those of client-go and CustomResourceDefinitions. They must not
	// be changed after first use, and have no nil. Optional.
	Schemes []*runtime.Scheme
	// Wrap goes around the transport to all clusters, to count requests for instance. It must not add credentials:
	// those of one cluster would be sent to another. Optional.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Timeout is how long a request to a cluster with a kubeconfig may take. Default: 30 seconds.
	Timeout time.Duration

	mergeOnce sync.Once
	merged    *runtime.Scheme
	mergeErr  error

	mu      sync.Mutex
	pooled  map[string]*pooled
	evicted time.Time
}

const (
	// maxIdle is how long a cluster is kept that is not asked for.
	maxIdle = 15 * time.Minute
	// evictEvery keeps Get from looking at all clusters each time.
	evictEvery = time.Minute
)

type pooled struct {
	// cluster makes the Cluster at the first call, and returns the same from then on.
	cluster func() (*Cluster, error)
	used    time.Time
}

// Get returns the cluster for an identity. It makes no request. The same identity has the same Cluster for as long as
// the pool keeps it. An error never shows what is in a kubeconfig, and it does not help to try again.
func (p *Pool) Get(ctx context.Context, identity Identity) (*Cluster, error) {
	if identity.User == "" && len(identity.Groups) > 0 {
		return nil, errors.New("groups can only be impersonated together with a user")
	}
	id := identity.id()
	entry, dropped := p.entry(id, identity, rtime.RetrieveNow(ctx))
	for _, e := range dropped {
		if cluster, err := e.cluster(); err == nil {
			cluster.dropped()
		}
	}
	// The lock is not held, so that requests for other identities need not wait.
	cluster, err := entry.cluster()
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pooled[id] == entry {
			delete(p.pooled, id)
		}
		return nil, err
	}
	return cluster, nil
}

// entry returns the entry of an identity, and those that it drops since they were not used for too long.
func (p *Pool) entry(id string, identity Identity, now time.Time) (entry *pooled, dropped []*pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	expired := func(_ string, e *pooled) bool {
		if now.Sub(e.used) <= maxIdle {
			return false
		}
		dropped = append(dropped, e)
		return true
	}
	if now.Sub(p.evicted) >= evictEvery {
		p.evicted = now
		maps.DeleteFunc(p.pooled, expired)
	}
	e, ok := p.pooled[id]
	if !ok || expired(id, e) {
		if p.pooled == nil {
			p.pooled = make(map[string]*pooled)
		}
		e = &pooled{used: now, cluster: sync.OnceValues(func() (*Cluster, error) { return p.connect(id, identity) })}
		p.pooled[id] = e
	}
	// Requests run side by side, and one that began earlier may come later.
	if now.After(e.used) {
		e.used = now
	}
	return e, dropped
}

// idKey keys the hash of an ID, so that a kubeconfig cannot be found by trying.
var idKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	// It never fails.
	_, _ = rand.Read(key)
	return key
})

func (i Identity) id() string {
	h := hmac.New(sha256.New, idKey())
	part := func(value string) {
		// With their length before them, no two lists of parts look the same.
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(value))))
		_, _ = h.Write([]byte(value))
	}
	part(string(i.KubeConfig))
	part(i.User)
	for _, group := range slices.Sorted(slices.Values(i.Groups)) {
		part(group)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
