package transport

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/random"
)

// Options say what a network is like.
type Options struct {
	// Plan is what goes wrong.
	Plan plan.Plan
	// Restart is called in a goroutine of its own when the API server restarts. It may stop the server, and has to call
	// Serve when one answers again. Until then, it is not called again. Nil lets the same server go on.
	Restart func()
	// Kind returns the kind of a resource for the log, or "". Nil shows resources.
	Kind func(resource schema.GroupResource) string
	// Unlogged says which calls are counted, but not kept in the log unless a fault strikes them. Nil keeps all.
	Unlogged func(call fault.Call) bool
	// Lost is told of a request that undid what somebody else had written just before it. It may be nil.
	Lost func(e Entry)
	// UserDeletes has the user delete the resource that a request is about. Nil deletes nothing.
	UserDeletes func(e Entry)
	// Lines is how many lines the log keeps. 0 stands for 10,000.
	Lines int
}

// Network connects actors with an API server. It is safe for concurrent use.
type Network struct {
	options Options
	began   time.Time

	mu sync.Mutex
	// server is nil if nothing answers.
	server http.RoundTripper
	// downUntil is when a server answers again after a restart.
	downUntil time.Time
	// made is how many calls there were, by a hash of actor, verb and path: 64 bits for each path ever asked for.
	made map[uint64]int
	// open are the requests whose answers have not been read to the end, in the order in which they began.
	open     []*exchange
	happened []fault.Fault
	// calm says that no fault strikes.
	calm bool
	// holds are those of actors.
	holds map[string]*hold
	// struck is when the last fault did.
	struck time.Time
	log    log
}

// New returns a network on which nothing answers yet.
func New(options Options) *Network {
	if options.Lines <= 0 {
		options.Lines = 10000
	}
	return &Network{
		options: options, began: time.Now(), made: map[uint64]int{}, holds: map[string]*hold{},
		log: newLog(options.Lines),
	}
}

// Serve has requests answered by a server from now on. Nil refuses them. The transport has to call a handler in
// process, so that an answer comes without waiting for anything real.
func (n *Network) Serve(server http.RoundTripper) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = server
}

// Client returns a new transport of an actor: a new process of it. Calls of an actor are counted over all of them.
func (n *Network) Client(actor string) *Client {
	return &Client{network: n, actor: actor, ahead: n.options.Plan.Ahead(actor), died: make(chan struct{})}
}

// Restart restarts the API server: it breaks all connections, and refuses new ones for a time. Whether requests have
// their effect that are at the server in this moment is open.
func (n *Network) Restart(down time.Duration) {
	n.mu.Lock()
	if until := time.Now().Add(down); until.After(n.downUntil) {
		n.downUntil = until
	}
	// A server that does not answer yet is one that is restarting.
	stops := n.options.Restart != nil && n.server != nil
	if stops {
		n.server = nil
	}
	open := slices.Clone(n.open)
	n.mu.Unlock()
	for _, x := range open {
		if x.call.Verb != fault.Outside {
			x.cancel(errReset)
		}
	}
	if stops {
		go n.options.Restart()
	}
}

// Happened returns the faults that happened, each as a fault of one call, in the order in which they did.
func (n *Network) Happened() []fault.Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.happened)
}

// Calm says whether faults are held back. Latency is not.
func (n *Network) Calm(calm bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calm = calm
}

// begin decides about a request. It returns an error if the process of the client is dead.
func (n *Network) begin(x *exchange) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if x.client.dead {
		return errDead
	}
	key := random.Hash(x.call.Actor, x.call.Verb, x.call.Path)
	n.made[key]++
	x.call.N, x.call.At = n.made[key], n.now()
	x.entry.Call = x.call
	x.decision = n.options.Plan.Decide(x.call)
	if n.calm {
		x.decision.Fault = fault.Fault{}
	}
	n.open = append(n.open, x)
	return nil
}

// Trouble returns when the last fault struck, or when a restart of the API server is over, whichever is later.
func (n *Network) Trouble() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.downUntil.After(n.struck) {
		return n.downUntil
	}
	return n.struck
}

// end forgets a request. It reports whether it was there.
func (n *Network) end(x *exchange) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.open, x)
	if i >= 0 {
		n.open = slices.Delete(n.open, i, i+1)
	}
	return i >= 0
}

// serving returns what answers now, or nil.
func (n *Network) serving() http.RoundTripper {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().Before(n.downUntil) {
		return nil
	}
	return n.server
}

// Now returns how much time has passed, as [Entry.At].
func (n *Network) Now() time.Duration { return n.now() }

func (n *Network) now() time.Duration { return time.Since(n.began) }
