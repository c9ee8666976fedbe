package reconcilers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// componentWaker brings resources back when something of their objects changes. It is a source of the controller, and knows its
// queue once that runs; whoever wakes before is heard then.
type componentWaker struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[Request]
	early map[Request]bool
	// paces are how often large resources are woken at most, for a request of theirs costs something.
	paces map[types.NamespacedName]time.Duration
	// atEnd are called when the controller stops.
	atEnd []func()
}

var _ source.Source = (*componentWaker)(nil)

// Start is called by the controller. A source that several controllers start (one node in several trees) serves the last.
func (w *componentWaker) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for request := range w.early {
		queue.Add(request)
	}
	w.early = nil
	context.AfterFunc(ctx, w.end)
	return nil
}

// serving tells whether a controller runs that can be woken.
func (w *componentWaker) serving() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue != nil
}

// whenDone has f called when the controller stops.
func (w *componentWaker) whenDone(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atEnd = append(w.atEnd, f)
}

func (w *componentWaker) end() {
	w.mu.Lock()
	ends := w.atEnd
	w.atEnd, w.queue = nil, nil
	w.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// pace notes how many objects a resource has. One with many is woken after a delay, and so once for many of them.
func (w *componentWaker) pace(name types.NamespacedName, objects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delay := min(time.Duration(objects)*componentPacePerObject, componentPaceLimit)
	if delay < componentPaceFloor {
		delete(w.paces, name)
		return
	}
	if w.paces == nil {
		w.paces = map[types.NamespacedName]time.Duration{}
	}
	w.paces[name] = delay
}

const (
	componentPacePerObject = 50 * time.Microsecond
	componentPaceFloor     = 10 * time.Millisecond
	componentPaceLimit     = time.Second
)

// wake makes the resource due; low with the priority of what can wait.
func (w *componentWaker) wake(name types.NamespacedName, low bool) {
	w.mu.Lock()
	queue, pace := w.queue, w.paces[name]
	request := Request{NamespacedName: name}
	if queue == nil {
		if w.early == nil {
			w.early = map[Request]bool{}
		}
		w.early[request] = true
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	if ordered, ok := queue.(priorityqueue.PriorityQueue[Request]); ok {
		options := priorityqueue.AddOpts{After: pace}
		if low {
			priority := handler.LowPriority
			options.Priority = &priority
		}
		ordered.AddWithOpts(options, request)
		return
	}
	queue.AddAfter(request, pace)
}
