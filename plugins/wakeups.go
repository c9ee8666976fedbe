package plugins

import (
	"sync"

	"github.com/espalier-dev/espalier/reconcilers"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// wakeups has resources reconciled again. The zero value is ready for use.
type wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcilers.Request]
	known map[types.NamespacedName]int
}

func (w *wakeups) startWith(queue workqueue.TypedRateLimitingInterface[reconcilers.Request]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
}

// add notes a resource to be woken.
func (w *wakeups) add(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[types.NamespacedName]int{}
	}
	w.known[name]++
}

// remove notes that a resource is gone. Within the items of a loop, a resource is noted once for each.
func (w *wakeups) remove(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[name]--; w.known[name] <= 0 {
		delete(w.known, name)
	}
}

// wake has a resource reconciled again, if the controller runs.
func (w *wakeups) wake(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcilers.Request{NamespacedName: name})
	}
}

// all wakes all resources.
func (w *wakeups) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		return
	}
	for name := range w.known {
		w.queue.Add(reconcilers.Request{NamespacedName: name})
	}
}
