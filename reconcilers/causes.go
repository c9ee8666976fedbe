package reconcilers

import (
	"context"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/emptywatch"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// causes has why each resource of a controller is reconciled next, while observers listen. A nil causes knows nothing.
type causes struct {
	mu sync.Mutex
	// events are those since the last request for a resource.
	events map[Request][]Cause
	// planned is what the last request for a resource asked for.
	planned map[Request]CauseKind
}

func newCauses() *causes {
	return &causes{events: map[Request][]Cause{}, planned: map[Request]CauseKind{}}
}

// maxCauses limits the causes of one request. The last one takes the place of those in the middle.
const maxCauses = 8

func (c *causes) add(request Request, cause Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.events[request]
	switch n := len(known); {
	case n > 0 && known[n-1] == cause:
	case n == maxCauses:
		known[n-1] = cause
	default:
		c.events[request] = append(known, cause)
	}
}

// take returns why a request runs. What is added from then on has a request of its own.
func (c *causes) take(request Request) []Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken, planned := c.events[request], c.planned[request]
	delete(c.events, request)
	delete(c.planned, request)
	switch {
	case len(taken) > 0:
		return taken
	case planned != "":
		return []Cause{{Kind: planned}}
	default:
		return []Cause{{Kind: CauseOther}}
	}
}

// ended notes what a request has asked for.
func (c *causes) ended(request Request, result Result, err error) {
	if c == nil {
		return
	}
	planned := CauseRetry
	//lint:ignore SA1019 users still set it
	retried := err != nil || result.Requeue
	switch {
	case result.RequeueAfter > 0 && err == nil:
		planned = CauseDelay
	case !retried:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned[request] = planned
}

// watchResources watches the resources themselves, by a handler of its own for the events that the author's predicates
// let pass: so the watch for the controller's own type, which the builder requires, passes none on.
func (w *watches) watchResources(
	bldr *Builder, obj client.Object, orphaned *orphaned, options []builder.ForOption,
) {
	converted, ok := watchesOptions(options)
	if !ok {
		bldr.For(obj, options...)
		return
	}
	bldr.For(obj, append(slices.Clone(options), passNothing)...)
	orphaned.watched = true
	bldr.Watches(obj, w.noting(&resourceHandler{orphaned: orphaned}), converted...)
}

// passNothing has a watch pass no event on.
var passNothing = builder.WithPredicates(emptywatch.Predicate{})

func createdOrStart(e event.CreateEvent) CauseKind {
	if e.IsInInitialList {
		return CauseStart
	}
	return CauseCreated
}

func updatedOrResync(e event.UpdateEvent) CauseKind {
	if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
		return CauseResync
	}
	return CauseUpdated
}

// of returns a handler that notes the requests which inner makes.
func (c *causes) of(inner handler.EventHandler) handler.EventHandler {
	if c == nil {
		return inner
	}
	return causeHandler{causes: c, inner: inner}
}

// causeHandler notes for which requests a handler asks.
type causeHandler struct {
	causes *causes
	inner  handler.EventHandler
}

type requestQueue = workqueue.TypedRateLimitingInterface[Request]

func (h causeHandler) Create(ctx context.Context, e event.CreateEvent, q requestQueue) {
	h.inner.Create(ctx, e, h.noting(q, createdOrStart(e), e.Object))
}

func (h causeHandler) Update(ctx context.Context, e event.UpdateEvent, q requestQueue) {
	h.inner.Update(ctx, e, h.noting(q, updatedOrResync(e), e.ObjectNew))
}

func (h causeHandler) Delete(ctx context.Context, e event.DeleteEvent, q requestQueue) {
	h.inner.Delete(ctx, e, h.noting(q, CauseDeleted, e.Object))
}

func (h causeHandler) Generic(ctx context.Context, e event.GenericEvent, q requestQueue) {
	h.inner.Generic(ctx, e, h.noting(q, CauseOther, e.Object))
}

// noting returns a queue that notes what is added. Handlers give a queue with priorities a lower one at the start.
func (h causeHandler) noting(q requestQueue, kind CauseKind, obj client.Object) requestQueue {
	noting := notingQueue{TypedRateLimitingInterface: q, note: func(request Request) {
		h.causes.add(request, Cause{Kind: kind, Object: describeObject(obj)})
	}}
	if prioritized, ok := q.(priorityqueue.PriorityQueue[Request]); ok {
		return notingPriorityQueue{notingQueue: noting, prioritized: prioritized}
	}
	return noting
}

type notingQueue struct {
	workqueue.TypedRateLimitingInterface[Request]
	note func(Request)
}

func (q notingQueue) Add(request Request) {
	q.note(request)
	q.TypedRateLimitingInterface.Add(request)
}

type notingPriorityQueue struct {
	notingQueue
	prioritized priorityqueue.PriorityQueue[Request]
}

var _ priorityqueue.PriorityQueue[Request] = notingPriorityQueue{}

func (q notingPriorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...Request) {
	for _, request := range requests {
		q.note(request)
	}
	q.prioritized.AddWithOpts(o, requests...)
}

func (q notingPriorityQueue) GetWithPriority() (request Request, priority int, shutdown bool) {
	return q.prioritized.GetWithPriority()
}
