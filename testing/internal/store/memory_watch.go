package store

import (
	"context"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch implements [client.WithWatch]. It starts with the objects that are there, unless the options have a resource
// version to start after. The events wait until they are received. The watch ends with the context.
func (c *memoryClient) Watch(
	ctx context.Context, list client.ObjectList, opts ...client.ListOption,
) (watch.Interface, error) {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := c.itemKind(list)
	if err != nil {
		return nil, err
	}
	newItem, err := itemOf(list)
	if err != nil {
		return nil, err
	}
	call := c.call(Watch, gvk, client.ObjectKey{Namespace: options.Namespace})
	call.Live = true
	w := &memoryWatcher{
		store: c.store, gvk: gvk, newItem: newItem,
		results: make(chan watch.Event), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	err = c.run(ctx, call, func() error { return c.prepare(w, options) })
	if err != nil {
		return nil, err
	}
	w.start(ctx)
	return w, nil
}

// prepare sets what a memoryWatcher selects, and where it starts.
func (c *memoryClient) prepare(w *memoryWatcher, options *client.ListOptions) error {
	s := c.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.resource(w.gvk)
	if err != nil {
		return err
	}
	selects, err := r.selector(options)
	if err != nil {
		return err
	}
	namespace := r.namespace(options.Namespace)
	w.selects = func(r *record) bool {
		return r != nil && r.gvk.GroupKind() == w.gvk.GroupKind() &&
			(namespace == "" || r.namespace == namespace) && selects(r)
	}
	raw := metav1.ListOptions{}
	if options.Raw != nil {
		raw = *options.Raw
	}
	w.revision = s.state.revision
	initial := raw.ResourceVersion == "" || raw.ResourceVersion == "0"
	if !initial {
		if w.revision, err = parseVersion(raw.ResourceVersion); err != nil {
			return err
		}
	}
	if raw.SendInitialEvents != nil {
		initial = *raw.SendInitialEvents
	}
	if !initial {
		return nil
	}
	w.revision = s.state.revision
	for _, r := range s.state.tables[w.gvk.GroupKind()] {
		if w.selects(r) {
			w.initial = append(w.initial, change{revision: w.revision, after: r})
		}
	}
	w.bookmark = raw.SendInitialEvents != nil
	return nil
}

func parseVersion(version string) (int64, error) {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil || number < 0 {
		return 0, apierrors.NewBadRequest("invalid resource version " + strconv.Quote(version))
	}
	return number, nil
}

// memoryWatcher sends events to one client, in the order of the changes. It reads the journal, so a write never waits
// for it.
type memoryWatcher struct {
	store   *memory
	gvk     schema.GroupVersionKind
	newItem func() client.Object
	selects func(*record) bool
	// initial is sent first, with a bookmark after it if it was asked for. Revision is up to where changes are sent.
	initial  []change
	bookmark bool
	revision int64

	results chan watch.Event
	wake    chan struct{}
	done    chan struct{}
	once    sync.Once
}

var _ watch.Interface = (*memoryWatcher)(nil)

// Stop implements [watch.Interface]. Events that were not received are dropped.
func (w *memoryWatcher) Stop() { w.once.Do(func() { close(w.done) }) }

// ResultChan implements [watch.Interface].
func (w *memoryWatcher) ResultChan() <-chan watch.Event { return w.results }

// wakeUp says that the journal has more. It does not wait.
func (w *memoryWatcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *memoryWatcher) start(ctx context.Context) {
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == nil {
		s.watchers = map[*memoryWatcher]struct{}{}
	}
	s.watchers[w] = struct{}{}
	w.wakeUp()
	go func() {
		defer close(w.results)
		w.run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}()
}

// run sends events until the watch ends.
func (w *memoryWatcher) run(ctx context.Context) {
	for _, c := range w.initial {
		if !w.send(ctx, w.event(c)) {
			return
		}
	}
	if w.bookmark && !w.send(ctx, w.endOfInitial()) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.done:
			return
		case <-w.wake:
		}
		for _, c := range w.next() {
			if event := w.event(c); event.Type != "" && !w.send(ctx, event) {
				return
			}
		}
	}
}

// next returns the changes that were not sent.
func (w *memoryWatcher) next() []change {
	s := w.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	changes := s.state.since(w.revision)
	w.revision = max(w.revision, s.state.revision)
	return changes
}

func (w *memoryWatcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.done:
		return false
	case w.results <- event:
		return true
	}
}

// event returns the event of a change. Its type is empty if the client does not select the object.
func (w *memoryWatcher) event(c change) watch.Event {
	was, is := w.selects(c.before), w.selects(c.after)
	event := watch.Event{}
	switch {
	case is && was:
		event.Type = watch.Modified
	case is:
		event.Type = watch.Added
	case was:
		event.Type = watch.Deleted
	default:
		return event
	}
	item := w.newItem()
	shown := c.after
	if event.Type == watch.Deleted {
		shown = c.before
	}
	if err := shown.copyTo(item, w.gvk.GroupVersion()); err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	item.GetObjectKind().SetGroupVersionKind(w.gvk)
	if event.Type == watch.Deleted {
		item.SetResourceVersion(strconv.FormatInt(c.revision, 10))
	}
	event.Object = item
	return event
}

// endOfInitial is the event after the objects that were there.
func (w *memoryWatcher) endOfInitial() watch.Event {
	item := w.newItem()
	item.GetObjectKind().SetGroupVersionKind(w.gvk)
	item.SetResourceVersion(strconv.FormatInt(w.revision, 10))
	item.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return watch.Event{Type: watch.Bookmark, Object: item}
}
