package fidelity

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watching starts a watch, does something, and notes the events up to the one that is expected to be the last.
func (p *probe) watching(what string, list client.ObjectList, last string, act func(), opts ...client.ListOption) {
	w, err := p.Watch(p.ctx, list, append(opts, client.InNamespace(p.namespace))...)
	if !p.call(what, err) {
		return
	}
	defer w.Stop()
	act()
	for noted := ""; noted != last; {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				p.note("closed")
				return
			}
			if noted = p.event(event); noted != bookmark {
				p.note("%s", noted)
			}
		case <-time.After(p.cluster.Patience()):
			p.note("no more events")
			return
		}
	}
}

// bookmark is an event that comes from time to time.
const bookmark = "BOOKMARK -"

func (p *probe) event(event watch.Event) string {
	obj, ok := event.Object.(client.Object)
	if !ok {
		return string(event.Type) + " " + at(event.Object, "reason")
	}
	if event.Type == watch.Bookmark {
		return string(event.Type) + " " + at(obj, "metadata", "annotations")
	}
	return string(event.Type) + " " + obj.GetName() + " " + at(obj, "data", "a")
}

// await returns the next event of a type, and reports whether there is one.
func (p *probe) await(w watch.Interface, eventType watch.EventType) (watch.Event, bool) {
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == eventType {
				return event, open
			}
		case <-time.After(p.cluster.Patience()):
			return watch.Event{}, false
		}
	}
}

func nothing() {}
