// Package clusters makes and keeps clients for the clusters and identities that components are deployed with.
package clusters

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	rtime "github.com/espalier-dev/espalier/time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity is where and as whom a component is deployed.
type Identity struct {
	// KubeConfig is that of another cluster; empty for the cluster of the operator.
	KubeConfig []byte
	// User and Groups are whom to impersonate; none if empty. In another cluster, the user of the kubeconfig impersonates them.
	// Groups need a user; their order does not matter.
	User   string
	Groups []string
}

// Cluster is a cluster seen with an identity. It is safe for concurrent use, and stays usable after the [Pool] has let it go.
type Cluster struct {
	// ID tells clusters of one [Pool] apart. Two of the same ID are interchangeable, also if the pool had made the one, let it
	// go, and made the other. It shows nothing of the identity, and is another one in each process.
	ID string
	// Config is what requests are made with. It must not be changed.
	Config *rest.Config
	// HTTPClient belongs to Config: what is made with both shares the connections of the cluster.
	HTTPClient *http.Client
	// Client reads past any cache. Its REST mapper is shared by all who use this Cluster, and asks the API server for what it
	// does not know yet. What it knows it believes until it is reset (MaybeResetRESTMapper of apimachinery), which lets the client forget
	// as well where types are served. Its scheme has the types of client-go, and CustomResourceDefinitions.
	Client client.Client

	discovery discovery.DiscoveryInterface
}

// Discovery tells what the API server serves. It asks it each time.
func (c *Cluster) Discovery() discovery.DiscoveryInterface { return c.discovery }

// Pool keeps one [Cluster] for each identity, until nobody has asked for it for 15 minutes. It is safe for concurrent use, and
// has no goroutines. It must not be copied after first use.
//
// A request that takes longer than 30 seconds fails; if Home has a timeout of its own, that is how long a request to the
// operator's cluster may take. It does not hold for watches. There is no limit to the rate of requests, unless Home has one, for the operator's cluster: the API
// server defends itself.
type Pool struct {
	// Home is the config of the operator's own cluster. It must not be changed after first use. Required, but for identities
	// with a kubeconfig; these take the user agent from it, and nothing else.
	Home *rest.Config
	// Wrap goes around the transport to all clusters, to count requests for instance. It must not add credentials: those of one
	// cluster would be sent to another. Optional.
	Wrap func(http.RoundTripper) http.RoundTripper

	mu      sync.Mutex
	entries map[string]*entry
	swept   time.Time
}

const (
	// maxIdle is how long a cluster is kept that nobody asks for.
	maxIdle = 15 * time.Minute
	// sweepEvery keeps Get from looking at all clusters each time.
	sweepEvery = time.Minute
)

type entry struct {
	// cluster makes the Cluster at the first call, and returns the same from then on.
	cluster func() (*Cluster, error)
	used    time.Time
}

// Get returns the cluster for an identity. It makes no request. The same identity has the same Cluster, as long as the pool
// keeps it. An error never shows what is in a kubeconfig, and trying again does not help.
func (p *Pool) Get(ctx context.Context, identity Identity) (*Cluster, error) {
	if identity.User == "" && len(identity.Groups) > 0 {
		return nil, errors.New("groups can only be impersonated together with a user")
	}
	id := identity.id()
	e := p.enter(id, identity, rtime.RetrieveNow(ctx))
	// Whoever wants another identity need not wait for this one to be made.
	cluster, err := e.cluster()
	if err != nil {
		p.forget(id, e)
		return nil, err
	}
	return cluster, nil
}

// enter returns the entry of an identity, used now.
func (p *Pool) enter(id string, identity Identity, now time.Time) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) >= sweepEvery {
		p.swept = now
		for id, e := range p.entries {
			if e.expired(now) {
				delete(p.entries, id)
			}
		}
	}
	e, ok := p.entries[id]
	if !ok || e.expired(now) {
		if p.entries == nil {
			p.entries = make(map[string]*entry)
		}
		e = &entry{used: now, cluster: sync.OnceValues(func() (*Cluster, error) { return p.connect(id, identity) })}
		p.entries[id] = e
	}
	// Requests run side by side, and one that began earlier may come later.
	if now.After(e.used) {
		e.used = now
	}
	return e
}

func (e *entry) expired(now time.Time) bool { return now.Sub(e.used) > maxIdle }

// forget lets an entry go, unless there is another one by now.
func (p *Pool) forget(id string, e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[id] == e {
		delete(p.entries, id)
	}
}

// idKey makes IDs from which nobody can guess a kubeconfig by trying.
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
