package memserver

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// watcher sends events to one client in the order of the writes. Its queue is unbounded, so that a write never waits
// for a slow client. One goroutine drains it until Stop.
type watcher struct {
	namespace string
	results   chan watch.Event
	wake      chan struct{}
	done      chan struct{}
	stop      func()

	mu    sync.Mutex
	queue []watch.Event
}

var _ watch.Interface = (*watcher)(nil)

// newWatcher starts a watcher of a namespace, or of all if it is empty. It calls onStop once, when it is stopped.
func newWatcher(namespace string, onStop func(*watcher)) *watcher {
	w := &watcher{
		namespace: namespace,
		results:   make(chan watch.Event),
		wake:      make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
	w.stop = sync.OnceFunc(func() {
		close(w.done)
		onStop(w)
	})
	go w.run()
	return w
}

// Stop implements [watch.Interface]. Events not yet received are dropped and the result channel is closed.
func (w *watcher) Stop() { w.stop() }

// ResultChan implements [watch.Interface].
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

func (w *watcher) wants(namespace string) bool {
	return w.namespace == "" || w.namespace == namespace
}

func (w *watcher) send(event watch.Event) {
	w.mu.Lock()
	w.queue = append(w.queue, event)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) run() {
	defer close(w.results)
	for {
		w.mu.Lock()
		events := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, event := range events {
			select {
			case w.results <- event:
			case <-w.done:
				return
			}
		}
		select {
		case <-w.wake:
		case <-w.done:
			return
		}
	}
}
