package testing

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/espalier-dev/espalier/reconcilers"
)

// requestLog has the requests that were enqueued since they were last taken.
type requestLog struct {
	// changed has an element when there may be more requests than there were.
	changed chan struct{}

	mu       sync.Mutex
	requests []reconcilers.Request
}

func newRequestLog() *requestLog {
	return &requestLog{changed: make(chan struct{}, 1)}
}

func (l *requestLog) add(request reconcilers.Request) {
	l.mu.Lock()
	l.requests = append(l.requests, request)
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// await waits until there are n different requests. It gives up when patience ends.
func (l *requestLog) await(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		l.mu.Lock()
		have := len(distinct(l.requests))
		l.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-l.changed:
		case <-ctx.Done():
			return
		}
	}
}

func (l *requestLog) take() []reconcilers.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := slices.Clone(l.requests)
	l.requests = nil
	return taken
}

// setupQueue is the queue of a controller that is to do nothing. It notes what is added, and has nothing for workers.
type setupQueue struct {
	requests *requestLog
	// ready is closed when a worker comes, which is after all sources have been started.
	ready     chan struct{}
	readyOnce sync.Once
	shut      chan struct{}
	shutOnce  sync.Once
}

var _ workqueue.TypedRateLimitingInterface[reconcilers.Request] = (*setupQueue)(nil)

func newSetupQueue(requests *requestLog) *setupQueue {
	return &setupQueue{requests: requests, ready: make(chan struct{}), shut: make(chan struct{})}
}

// Get implements [workqueue.TypedInterface].
func (q *setupQueue) Get() (reconcilers.Request, bool) {
	q.readyOnce.Do(func() { close(q.ready) })
	<-q.shut
	return reconcilers.Request{}, true
}

// Add implements [workqueue.TypedInterface].
func (q *setupQueue) Add(request reconcilers.Request) { q.requests.add(request) }

// AddAfter implements [workqueue.TypedDelayingInterface].
func (q *setupQueue) AddAfter(request reconcilers.Request, _ time.Duration) { q.requests.add(request) }

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *setupQueue) AddRateLimited(request reconcilers.Request) { q.requests.add(request) }

// ShutDown implements [workqueue.TypedInterface].
func (q *setupQueue) ShutDown() { q.shutOnce.Do(func() { close(q.shut) }) }

// ShutDownWithDrain implements [workqueue.TypedInterface].
func (q *setupQueue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown implements [workqueue.TypedInterface].
func (q *setupQueue) ShuttingDown() bool {
	select {
	case <-q.shut:
		return true
	default:
		return false
	}
}

// Len implements [workqueue.TypedInterface].
func (q *setupQueue) Len() int { return 0 }

// Done implements [workqueue.TypedInterface].
func (q *setupQueue) Done(reconcilers.Request) {}

// Forget implements [workqueue.TypedRateLimitingInterface].
func (q *setupQueue) Forget(reconcilers.Request) {}

// NumRequeues implements [workqueue.TypedRateLimitingInterface].
func (q *setupQueue) NumRequeues(reconcilers.Request) int { return 0 }
