package page

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"
)

// Options are the options of [New].
type Options struct {
	// Access decides who sees what. Without it each request is refused.
	Access Access
	// MaxResources limits how many resources the page knows, of all roots together. The default is 10,000.
	MaxResources int
	// MaxObjects limits how many objects of components the page knows, of all resources together. The default is
	// 100,000.
	MaxObjects int
	// Replica is the name of this replica of the operator. The default is the name of the host, which in a pod is the
	// name of the pod.
	Replica string
	// Elected is closed when this replica leads, as Elected of the manager is. If it is nil, the page does not say who
	// leads.
	Elected <-chan struct{}
	// Leader returns the identity of the replica that leads; empty if nobody does. A standby calls it for each page
	// that it shows, see [LeaseHolder]. Optional.
	Leader func(ctx context.Context) (identity string, err error)
	// Peer returns the URL below which the replica with an identity has its page, such as
	// "https://operator-0.operator:8443/espalier/", for the link of a standby to the leader. The identity is that of
	// the Lease: with controller-runtime the name of the host, which is that of the pod, followed by "_" and a UUID.
	// Optional.
	Peer func(identity string) string
}

// Page is a [reconcilers.Observer] that keeps what it is told, and an [http.Handler] that shows it. Make it with [New].
type Page struct {
	options  Options
	recorder *recorder
	streams  *streams
	plans    *plans
	watches  watchFailures
	// now is the time at which a page is made.
	now func() time.Time
	// patience is for how long a client may take nothing of what is sent.
	patience time.Duration
	// began is when the page was made.
	began time.Time
}

var (
	_ reconcilers.Observer = (*Page)(nil)
	_ http.Handler         = (*Page)(nil)
)

// patience is for how long a client may take nothing of what is sent.
const patience = 5 * time.Second

// The defaults of Options.
const (
	defaultMaxResources = 10_000
	defaultMaxObjects   = 100_000
)

// New returns a page.
func New(options Options) *Page {
	options.MaxResources = cmp.Or(max(options.MaxResources, 0), defaultMaxResources)
	options.MaxObjects = cmp.Or(max(options.MaxObjects, 0), defaultMaxObjects)
	if options.Replica == "" {
		options.Replica, _ = os.Hostname() // without a name the page does not say which replica it is
	}
	return &Page{
		options:  options,
		recorder: newRecorder(options.MaxResources, options.MaxObjects),
		streams:  newStreams(),
		plans:    newPlans(),
		now:      time.Now,
		patience: patience,
		began:    time.Now(),
	}
}
