package component

import (
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// eventSource brings a resource back when one of its objects changes. It is a source of the controller. Events that
// come before the controller starts it are delivered then.
type eventSource struct {
	mu    sync.Mutex
	queue requestQueue
	early map[reconcilers.Request]bool
	// delays coalesce the events of large components, whose requests cost much.
	delays map[types.NamespacedName]time.Duration
	// stops are called when the controller stops.
	stops []func()
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcilers.Request]

var _ source.Source = (*eventSource)(nil)

// Start is called by the controller. A source that several controllers start (one node in several trees) serves the
// last.
func (s *eventSource) Start(ctx context.Context, queue requestQueue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	for request := range s.early {
		queue.Add(request)
	}
	s.early = nil
	context.AfterFunc(ctx, s.stop)
	return nil
}

// running reports whether a controller runs that can be woken.
func (s *eventSource) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue != nil
}

// onStop has f called when the controller stops.
func (s *eventSource) onStop(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, f)
}

func (s *eventSource) stop() {
	s.mu.Lock()
	stops := s.stops
	s.stops, s.queue = nil, nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// setCoalesceDelay notes how many objects a resource has. A resource with many is woken after a delay, once for many
// events.
func (s *eventSource) setCoalesceDelay(name types.NamespacedName, objects int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delay := min(time.Duration(objects)*coalescePerObject, maxCoalesceDelay)
	if delay < minCoalesceDelay {
		delete(s.delays, name)
		return
	}
	if s.delays == nil {
		s.delays = map[types.NamespacedName]time.Duration{}
	}
	s.delays[name] = delay
}

const (
	coalescePerObject = 25 * time.Microsecond
	minCoalesceDelay  = 10 * time.Millisecond
	maxCoalesceDelay  = time.Second
)

// wake adds a request of the resource to the queue, with low priority if low is true.
func (s *eventSource) wake(name types.NamespacedName, low bool) {
	s.mu.Lock()
	queue, delay := s.queue, s.delays[name]
	request := reconcilers.Request{NamespacedName: name}
	if queue == nil {
		if s.early == nil {
			s.early = map[reconcilers.Request]bool{}
		}
		s.early[request] = true
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if ordered, ok := queue.(priorityqueue.PriorityQueue[reconcilers.Request]); ok {
		options := priorityqueue.AddOpts{After: delay}
		if low {
			priority := handler.LowPriority
			options.Priority = &priority
		}
		ordered.AddWithOpts(options, request)
		return
	}
	queue.AddAfter(request, delay)
}
