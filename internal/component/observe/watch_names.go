package observe

import (
	"context"
	"slices"

	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/informer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// maxNamesOfComponent is how many objects are watched by name for one component, and maxNames for all.
	maxNamesOfComponent = 16
	maxNames            = 256
)

// nameWatch watches the metadata of one object by its name: an object that is in the way of a component and has no
// owner label, so the watch of its type does not show it. It is guarded by the lock of the [Watching].
type nameWatch struct {
	// entry is the interest that it serves. The watch has ended when the entry has another one, or none.
	entry *entry
	// open reports whether it has shown what there is.
	open bool
	// shown is the object as it is shown; nil if there is none.
	shown *snapshot
	stop  context.CancelFunc
}

// covers reports whether the watch is as new as the response to a request about an object without owner label. The
// response then counts until the watch shows something newer.
func (n *nameWatch) covers(r *response) bool {
	return n != nil && n.open && n.shown != nil && r.snapshot != nil && r.snapshot.marks.Label == "" &&
		!older(r.snapshot.version, n.shown.version)
}

// WatchNames implements [Observer].
func (w *Watching) WatchNames(c Component, keys []plan.Key) (all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.lookUp(&c)
	if s == nil || len(keys) == 0 && len(s.names) == 0 {
		return len(keys) == 0
	}
	wanted := make(map[*entry]bool, len(keys))
	for _, key := range keys {
		if e := w.find(s, key); e != nil && e.slot.shown == nil {
			wanted[e] = true
		}
	}
	for _, n := range slices.Clone(s.names) {
		if !wanted[n.entry] {
			w.endNameWatch(n.entry)
		}
	}
	all = true
	for _, key := range keys {
		e := w.find(s, key)
		if e != nil && wanted[e] && e.byName == nil {
			w.startNameWatch(e)
		}
		all = all && e != nil && e.isWatched()
	}
	return all
}

// isWatched reports whether a watch shows what is believed of an object.
func (e *entry) isWatched() bool {
	if e.slot.shown != nil {
		return e.typ.phase == live
	}
	return e.response != nil && e.byName.covers(e.response)
}

// startNameWatch starts to watch the object of an entry, unless there are too many watches or the type cannot be
// watched. The lock is held.
func (w *Watching) startNameWatch(e *entry) {
	t := e.typ
	if w.stopped || len(e.state.names) >= maxNamesOfComponent || w.names >= maxNames ||
		t.phase != live && t.phase != starting || t.resource.Empty() {
		return
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.root, w.options.Log))
	n := &nameWatch{entry: e, stop: cancel}
	e.byName, e.state.names = n, append(e.state.names, n)
	w.names++
	at, name := t.resource, e.name
	w.running.Go(func() {
		defer cancel()
		w.watchName(ctx, n, at, name)
	})
}

// endNameWatch ends the watch of an entry by name, if there is one. The lock is held.
func (w *Watching) endNameWatch(e *entry) {
	n := e.byName
	if n == nil {
		return
	}
	n.stop()
	e.byName = nil
	e.state.names = slices.DeleteFunc(e.state.names, func(other *nameWatch) bool { return other == n })
	w.names--
}

// runName watches an object until ctx is done.
func (w *Watching) runName(
	ctx context.Context, n *nameWatch, at schema.GroupVersionResource, name types.NamespacedName,
) {
	objects := w.metadata.Resource(at).Namespace(name.Namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	named := func(o *metav1.ListOptions) { o.FieldSelector = selector }
	for backoff := informer.WatchBackoff; ctx.Err() == nil; informer.Pause(ctx, backoff.Step()) {
		_ = informer.NewReflector(w.options.Log, at.String(), &metav1.PartialObjectMetadata{}, objects.List,
			objects.Watch, named, w.storeOfName(n)).ListAndWatchWithContext(ctx)
		w.mu.Lock()
		if n.open {
			n.open, backoff = false, informer.WatchBackoff
		}
		w.mu.Unlock()
	}
}

// storeOfName returns the store that receives the events of a nameWatch.
func (w *Watching) storeOfName(n *nameWatch) informer.Events {
	return informer.Events{
		Replaced: func(objects []any, version string) error {
			var shown *snapshot
			for _, object := range objects {
				if seen, ok := object.(metav1.Object); ok {
					shown = w.extractor.snapshot(seen)
				}
			}
			w.locked(func(wake *wakeups) {
				n.open = true
				n.show(shown, version, wake)
			})
			return nil
		},
		Shown: func(object any, deleted bool) error {
			seen, ok := object.(metav1.Object)
			if !ok {
				return errNoMetadata
			}
			shown := w.extractor.snapshot(seen)
			version := shown.version
			if deleted {
				shown = nil
			}
			w.locked(func(wake *wakeups) { n.show(shown, version, wake) })
			return nil
		},
	}
}

// show stores what the watch shows from a resource version on; nil stands for no object. The lock is held.
//
//	shown                     the response says         then
//	older than the response   an object                 nothing: more events follow
//	an object with the label  anything                  nothing: the watch of the type shows it
//	an object                 another object, or none   it is the response, and news
//	an object                 it, but for the version   it is the response, and news if the object is only read
//	no object                 an object, or nothing     the response is that it is gone, and news
//	no object                 that it is gone           nothing
func (n *nameWatch) show(shown *snapshot, version string, wake *wakeups) {
	e, before := n.entry, n.shown
	if e.byName != n {
		return
	}
	n.shown = shown
	r := e.response
	switch {
	case e.slot.shown != nil,
		r != nil && r.snapshot != nil && (r.snapshot.marks.Label != "" || older(version, r.snapshot.version)),
		shown != nil && shown.marks.Label != "",
		shown == nil && r != nil && r.snapshot == nil:
		return
	case shown == nil:
		gone := before
		if r != nil {
			gone = r.snapshot
		}
		e.response = &response{}
		if gone != nil {
			e.response.gone = gone.uid
		}
	case r == nil || r.snapshot == nil:
		e.response = &response{snapshot: shown}
	default:
		e.response = &response{snapshot: shown, at: r.at}
		if r.snapshot.alike(shown) && (!e.readOnly || e.awaitsRead() || r.snapshot.version == shown.version) {
			return
		}
	}
	e.failure = nil
	e.state.settled = false
	e.state.notify(e, wake)
}
