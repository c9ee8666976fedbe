package foreign

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http/httptrace"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServers are the API servers of a cluster, as far as they can be found out.
type apiServers struct {
	// client reaches each of them in the end.
	client client.Client
	// count is how many there are; 0 if not known.
	count int
}

// assumedServers is how many API servers a cluster is assumed to have whose Leases cannot be read. High availability
// takes three.
const assumedServers = 3

// findServers finds out once how many API servers there are. Without connections of their own, all requests may reach
// the same one, so it is enough to ask once.
func (g *Guard) findServers(ctx context.Context) (*apiServers, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.servers != nil {
		return g.servers, nil
	}
	found := &apiServers{client: g.Client, count: 1}
	if g.Fresh != nil {
		count, err := g.countServers(ctx)
		if err != nil {
			return nil, err
		}
		if found.count = count; count != 1 {
			if found.client, err = g.Fresh(); err != nil {
				return nil, fmt.Errorf("unable to make a client for the proof of fences: %w", err)
			}
		}
	}
	g.servers = found
	return found, nil
}

// countServers counts the Leases by which API servers identify themselves; 0 if they cannot be read, as without the
// right to do so.
func (g *Guard) countServers(ctx context.Context) (int, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
	of := client.MatchingLabels{"apiserver.kubernetes.io/identity": "kube-apiserver"}
	err := g.Client.List(ctx, list, of, client.InNamespace(metav1.NamespaceSystem))
	if err != nil {
		return 0, ctx.Err()
	}
	leases := &coordinationv1.LeaseList{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), leases); err != nil {
		return 0, nil
	}
	return validLeases(leases.Items), nil
}

// validLeases counts the Leases that have not expired. The newest one says what time it is: the clock here may differ
// from theirs.
func validLeases(leases []coordinationv1.Lease) int {
	var now time.Time
	for i := range leases {
		if renewed := leases[i].Spec.RenewTime; renewed != nil && renewed.After(now) {
			now = renewed.Time
		}
	}
	count := 0
	for i := range leases {
		spec := &leases[i].Spec
		if spec.RenewTime != nil && spec.LeaseDurationSeconds != nil &&
			!now.After(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds)*time.Second)) {
			count++
		}
	}
	return count
}

// tally counts the API servers that a fence has taken effect at.
type tally struct {
	// servers is how many there are; 0 if not known.
	servers int
	// met are those with a certificate of their own.
	met map[server]bool
	// inARow is how many instances were refused without one in between that was not.
	inARow int
}

const (
	// askedPerServer is how often fresh connections are tried for each API server that cannot be told apart from the
	// others. If a load balancer chooses at random, each of two or three is met in 97 to 98 of 100 cases. The margin
	// is for the rest.
	askedPerServer = 3
	maxAsked       = 12
)

// refusedBy adds that a server refused an instance, and reports whether that is enough: all servers were met, or so
// many connections were tried that most likely all were.
func (t *tally) refusedBy(s server) bool {
	t.inARow++
	if s != (server{}) {
		if t.met == nil {
			t.met = map[server]bool{}
		}
		t.met[s] = true
	}
	switch t.servers {
	case 0:
		return t.inARow >= askedPerServer*assumedServers
	case 1:
		return true
	}
	return len(t.met) >= t.servers || t.inARow >= min(askedPerServer*t.servers, maxAsked)
}

// server tells API servers apart by their certificates; the zero value if it is not known. Behind a load balancer, it
// is the only sure sign. Servers may also share a certificate.
type server [sha256.Size]byte

// traceServer returns a context for a request, after which server is the one that was asked over a new connection.
func traceServer(ctx context.Context) (traced context.Context, asked *server) {
	asked = &server{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			if err == nil && len(state.PeerCertificates) > 0 {
				*asked = sha256.Sum256(state.PeerCertificates[0].Raw)
			}
		},
	}), asked
}
