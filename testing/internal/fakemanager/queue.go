package fakemanager

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"

	"github.com/espalier-dev/espalier/reconcilers"
)

// Requests are the requests that were enqueued since they were last taken.
type Requests struct {
	// changed has an element when there may be more requests than there were.
	changed chan struct{}

	mu       sync.Mutex
	requests []reconcilers.Request
}

func (r *Requests) add(request reconcilers.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, request)
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Await waits until there are n different requests, but no longer than the timeout.
func (r *Requests) Await(ctx context.Context, n int, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		r.mu.Lock()
		have := sets.New(r.requests...).Len()
		r.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return
		}
	}
}

// Take returns the requests and forgets them.
func (r *Requests) Take() []reconcilers.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := slices.Clone(r.requests)
	r.requests = nil
	return taken
}

// queue is the queue of a controller that reconciles nothing. It records what is added, and has nothing for workers.
// What it does not implement itself is done by a real queue that stays empty.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcilers.Request]
	requests *Requests
	// ready is called when a worker comes, which is after all sources have been started.
	ready func()
}

// newQueue returns a queue, and a channel that is closed when all sources of its controller have been started.
func newQueue(requests *Requests) (*queue, <-chan struct{}) {
	started := make(chan struct{})
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[reconcilers.Request]()),
		requests: requests,
		ready:    sync.OnceFunc(func() { close(started) }),
	}, started
}

// Get implements [workqueue.TypedInterface]. It blocks until the queue is shut down.
func (q *queue) Get() (reconcilers.Request, bool) {
	q.ready()
	return q.TypedRateLimitingInterface.Get()
}

// Add implements [workqueue.TypedInterface].
func (q *queue) Add(request reconcilers.Request) { q.requests.add(request) }

// AddAfter implements [workqueue.TypedDelayingInterface].
func (q *queue) AddAfter(request reconcilers.Request, _ time.Duration) { q.requests.add(request) }

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *queue) AddRateLimited(request reconcilers.Request) { q.requests.add(request) }
