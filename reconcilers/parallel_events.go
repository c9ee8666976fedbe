package reconcilers

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// branchEvents are the events of a branch. They are held back until all branches have ended, so that they have the
// order of the nodes.
type branchEvents struct {
	mu    sync.Mutex
	held  []func()
	ended bool
}

// add holds an event back. After the end of the branches it is recorded at once.
func (e *branchEvents) add(event func()) {
	e.mu.Lock()
	ended := e.ended
	if !ended {
		e.held = append(e.held, event)
	}
	e.mu.Unlock()
	if ended {
		event()
	}
}

// end records the events. Those of a branch within a branch are held back by outer.
func (e *branchEvents) end(outer *branchPlace) {
	e.mu.Lock()
	held := e.held
	e.held, e.ended = nil, true
	e.mu.Unlock()
	for _, event := range held {
		if outer != nil {
			outer.events.add(event)
		} else {
			event()
		}
	}
}

// config returns the config for the nodes of a branch.
func (e *branchEvents) config(config Config) Config {
	if config.Recorder != nil {
		config.Recorder = &branchRecorder{config.Recorder, e}
	}
	if config.EventRecorder != nil {
		config.EventRecorder = &branchEventRecorder{config.EventRecorder, e}
	}
	return config
}

// branchRecorder holds events of a branch back.
type branchRecorder struct {
	next   record.EventRecorder
	events *branchEvents
}

// Event implements [record.EventRecorder].
func (r *branchRecorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.events.add(func() { r.next.Event(obj, eventType, reason, message) })
}

// Eventf implements [record.EventRecorder].
func (r *branchRecorder) Eventf(obj runtime.Object, eventType, reason, message string, args ...any) {
	r.Event(obj, eventType, reason, fmt.Sprintf(message, args...))
}

// AnnotatedEventf implements [record.EventRecorder].
func (r *branchRecorder) AnnotatedEventf(
	obj runtime.Object, annotations map[string]string, eventType, reason, message string, args ...any,
) {
	message = fmt.Sprintf(message, args...)
	r.events.add(func() { r.next.AnnotatedEventf(obj, annotations, eventType, reason, "%s", message) })
}

// branchEventRecorder holds events of a branch back.
type branchEventRecorder struct {
	next   events.EventRecorder
	events *branchEvents
}

// Eventf implements [events.EventRecorder].
func (r *branchEventRecorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	note = fmt.Sprintf(note, args...)
	r.events.add(func() { r.next.Eventf(regarding, related, eventType, reason, action, "%s", note) })
}
