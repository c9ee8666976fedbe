package page

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// maxStreams limits how many clients are told of changes, and maxStreamsOfViewer how many of one viewer.
const (
	maxStreams         = 100
	maxStreamsOfViewer = 20
)

// topic is what has changed, or what a client wants to be told of. Without a root that is all roots, and without the
// name of a resource a root as a whole.
type topic struct {
	root     string
	resource types.NamespacedName
}

// seenBy returns what a client that asks for t is told of a change. So what waits for a client is one resource, or the
// roots at most.
func (t topic) seenBy(changed topic) (topic, bool) {
	if t.resource.Name != "" {
		return changed, t == changed
	}
	return topic{root: changed.root}, t.root == "" || t.root == changed.root
}

// streams are the clients that are told of changes.
type streams struct {
	count atomic.Int32

	mu      sync.RWMutex
	clients map[*stream]struct{}
	// viewers has how many clients each viewer has.
	viewers map[string]int
	// servers has whether each server has shut down.
	servers map[*http.Server]bool
}

// stream is a client that is told of changes.
type stream struct {
	topic  topic
	viewer string
	// server is nil if it is not known.
	server *http.Server
	// ready has a value if there are changes, or if the client is disconnected.
	ready chan struct{}

	mu      sync.Mutex
	pending map[topic]struct{}
	ended   bool
}

func newStreams() *streams {
	return &streams{
		clients: map[*stream]struct{}{}, viewers: map[string]int{}, servers: map[*http.Server]bool{},
	}
}

// subscribe returns a new client, or nil if there are too many. It is disconnected when the server of its request shuts
// down, which otherwise waits for it: at once if it does already.
func (s *streams) subscribe(ctx context.Context, viewer string, t topic) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) == maxStreams || s.viewers[viewer] == maxStreamsOfViewer {
		return nil
	}
	made := &stream{topic: t, viewer: viewer, ready: make(chan struct{}, 1), pending: map[topic]struct{}{}}
	if made.server, _ = ctx.Value(http.ServerContextKey).(*http.Server); made.server != nil {
		ended, known := s.servers[made.server]
		if !known {
			s.servers[made.server] = false
			made.server.RegisterOnShutdown(func() { s.end(made.server) })
		}
		if ended {
			made.end()
		}
	}
	s.clients[made] = struct{}{}
	s.viewers[viewer]++
	s.count.Add(1)
	return made
}

func (s *streams) unsubscribe(client *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.clients[client]; ok {
		delete(s.clients, client)
		s.count.Add(-1)
		if s.viewers[client.viewer]--; s.viewers[client.viewer] == 0 {
			delete(s.viewers, client.viewer)
		}
	}
}

// publish tells the clients of a change. It does not wait for them.
func (s *streams) publish(changed topic) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for client := range s.clients {
		if seen, ok := client.topic.seenBy(changed); ok {
			client.add(seen)
		}
	}
}

// add notes a change. A change that the client was not told yet counts once.
func (c *stream) add(changed topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[changed] = struct{}{}
	c.wake()
}

// end has the client disconnected.
func (c *stream) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.wake()
}

func (c *stream) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// take returns the changes since the last call, and false if the client is to be disconnected.
func (c *stream) take() ([]topic, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := slices.SortedFunc(maps.Keys(c.pending), func(a, b topic) int { return cmp.Compare(a.root, b.root) })
	clear(c.pending)
	return taken, !c.ended
}

// end disconnects the clients of a server, now and later.
func (s *streams) end(server *http.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[server] = true
	for client := range s.clients {
		if client.server == server {
			client.end()
		}
	}
}
