package fidelity

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// silence is how long a check waits for an event that does not come.
const silence = time.Second

// wait is how long a check waits for an event, of which one is expected to be the last.
func (p *probe) wait(last string) <-chan time.Time {
	if last == "" {
		return time.After(silence)
	}
	return time.After(p.cluster.Patience())
}

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
		case <-p.wait(last):
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
		case <-p.wait(string(eventType)):
			return watch.Event{}, false
		}
	}
}

func nothing() {}

var watchChecks = []check{
	{"watch: what is there, changes and deletion", func(p *probe) {
		p.given(p.configMap("a"))
		p.watching("watch", &corev1.ConfigMapList{}, `DELETED a "2"`, func() {
			p.given(p.configMap("b"))
			p.must(p.patch(p.configMap("a"), merge(`{"data":{"a":"2"}}`)))
			p.must(p.patch(p.configMap("a"), merge(`{"data":{"a":"2"}}`)))
			p.must(p.remove(p.configMap("a")))
		})
	}},
	{"watch: from a revision", func(p *probe) {
		a := p.configMap("a")
		p.given(a)
		p.given(p.configMap("b"))
		create := func() { p.given(p.configMap("c")) }
		p.watching("watch", &corev1.ConfigMapList{}, `ADDED c "1"`, create, fromVersion(a.ResourceVersion))
	}},
	{"watch: deletion is as of its own revision", func(p *probe) {
		a := p.configMap("a")
		p.given(a)
		in := client.InNamespace(p.namespace)
		w, err := p.Watch(p.ctx, &corev1.ConfigMapList{}, in, fromVersion(a.ResourceVersion))
		p.must(err)
		defer w.Stop()
		p.must(p.remove(p.configMap("a")))
		select {
		case event := <-w.ResultChan():
			obj := event.Object.(client.Object)
			p.note("%s newer %t", event.Type, revision(obj.GetResourceVersion()) > revision(a.ResourceVersion))
		case <-p.wait("DELETED"):
			p.note("nothing")
		}
	}},
	{"watch: with a finalizer", func(p *probe) {
		p.given(p.held("a"))
		p.watching("watch", &corev1.ConfigMapList{}, `DELETED a "1"`, func() {
			p.must(p.remove(p.configMap("a")))
			p.release(p.configMap("a"))
		})
	}},
	{"watch: by label", func(p *probe) {
		in := p.configMap("a")
		in.Labels = map[string]string{"x": "y"}
		p.given(in)
		p.given(p.configMap("b"))
		p.watching("watch", &corev1.ConfigMapList{}, `ADDED b "1"`, func() {
			p.must(p.patch(p.configMap("a"), merge(`{"metadata":{"labels":null}}`)))
			p.must(p.patch(p.configMap("b"), merge(`{"metadata":{"labels":{"x":"y"}}}`)))
		}, client.MatchingLabels{"x": "y"})
	}},
	{"watch: by name", func(p *probe) {
		p.given(p.configMap("a"))
		p.given(p.configMap("b"))
		named := client.MatchingFields{"metadata.name": "b"}
		p.watching("watch", &corev1.ConfigMapList{}, `ADDED b "1"`, nothing, named)
	}},
	{"watch: bookmark after what is there", func(p *probe) {
		p.given(p.configMap("a"))
		p.watching("watch", &corev1.ConfigMapList{}, `BOOKMARK {"k8s.io/initial-events-end":"true"}`, nothing,
			&client.ListOptions{Raw: &metav1.ListOptions{
				SendInitialEvents: new(true), AllowWatchBookmarks: true,
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			}})
	}},
	{"watch: kinds of objects", func(p *probe) {
		p.given(p.gadget("a", nil))
		p.watching("unstructured", gadgetList(), "ADDED a -", nothing)
		p.given(p.configMap("b"))
		only := &metav1.PartialObjectMetadataList{}
		only.SetGroupVersionKind(kind("", "v1", "ConfigMapList"))
		p.watching("metadata", only, "ADDED b -", nothing)
		none := &unstructured.UnstructuredList{}
		none.SetGroupVersionKind(kind(group, "v1", "NothingList"))
		p.watching("no such kind", none, "", nothing)
	}},
}

func fromVersion(resourceVersion string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: resourceVersion}}
}
