package transport

import (
	"context"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Client is the transport of one process of an actor.
type Client struct {
	network *Network
	actor   string
	// ahead is how much the clock of the actor is.
	ahead time.Duration
	died  chan struct{}
	// dead belongs to the lock of the network.
	dead bool
}

var _ http.RoundTripper = &Client{}

// Config returns a configuration for clients of the actor. Host is the address of the server.
func (c *Client) Config(host string) *rest.Config {
	config := &rest.Config{Host: host, Transport: c, QPS: -1, UserAgent: c.actor}
	if c.ahead != 0 {
		// Times are found in JSON alone.
		config.ContentType = runtime.ContentTypeJSON
	}
	return config
}

// actorHeader is a header that a server gets with each request.
const actorHeader = "X-Actor"

// Actor returns whose request a server got, empty if it did not come over a network.
func Actor(r *http.Request) string { return r.Header.Get(actorHeader) }

// Died returns a channel that is closed when the process dies. What runs in it is to be ended then; none of its
// requests has an effect any more.
func (c *Client) Died() <-chan struct{} { return c.died }

// Kill ends the process: all its requests, also later ones, fail. Those that have not arrived at the server have no
// effect; whether those have that are at the server in this moment is open.
func (c *Client) Kill() {
	for _, x := range c.die() {
		x.cancel(errDead)
	}
}

// die returns the requests that are under way.
func (c *Client) die() []*exchange {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.dead {
		return nil
	}
	c.dead = true
	close(c.died)
	return slices.DeleteFunc(slices.Clone(c.network.open), func(x *exchange) bool { return x.client != c })
}

// RoundTrip implements [http.RoundTripper].
func (c *Client) RoundTrip(request *http.Request) (*http.Response, error) {
	x, err := c.newExchange(request)
	if err != nil {
		return nil, err
	}
	response, err := x.do()
	if err != nil {
		x.end(err)
		return nil, err
	}
	return response, nil
}

// newExchange begins an exchange. The body of the request is the exchange's if there is no error, and closed otherwise.
// A request that is given up before it is made does not count.
func (c *Client) newExchange(request *http.Request) (*exchange, error) {
	if err := request.Context().Err(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	x := &exchange{client: c, network: c.network, asked: request.Context(), ctx: ctx, cancel: cancel}
	x.request = request.Clone(ctx)
	x.request.Header.Set(actorHeader, c.actor)
	err := x.describe()
	if err == nil {
		err = c.network.begin(x)
	}
	if err != nil {
		cancel(err)
		x.closeBody()
		return nil, err
	}
	if x.call.Verb == fault.Watch {
		x.setTimeout()
	}
	return x, nil
}
