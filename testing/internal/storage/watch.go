package storage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// Watch implements [storage.Interface].
func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	s = s.in(ctx)
	key, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	revision, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := newWatcher(ctx, s, span{key: key, prefix: opts.Recursive}, opts)
	h := s.storage.current.Load()
	// An error here is one of the watch, for clients expect it as an event.
	from, err := beginningOf(h, int64(revision), opts)
	go w.run(h, from, err)
	// The watch needs nothing more from the server: it reads what it has to send from a history.
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// resultBuffer is how many events a watch makes before its client takes them.
const resultBuffer = 16

// watcher implements [watch.Interface]. It reads one history after the other and sends what concerns it.
type watcher struct {
	storage *Storage
	span    span
	events  events
	// bookmarks is whether the client wants bookmarks, progress whether it wants those requested for all watches.
	bookmarks, progress bool

	// done ends the watch; stop makes it so.
	done context.Context
	stop context.CancelFunc
	// release has the end of the resource not stop the watch any more.
	release func() bool
	results chan watch.Event

	// seen is the revision up to which the watch has read changes.
	seen int64
	// told is the revision up to which the client knows that it has been sent everything.
	told int64
	// progressRequests are those seen.
	progressRequests int
}

func newWatcher(ctx context.Context, s *store, in span, opts storage.ListOptions) *watcher {
	w := &watcher{
		storage:   s.storage,
		span:      in,
		events:    events{codec: s.codec, newFunc: s.newFunc, predicate: opts.Predicate},
		bookmarks: opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks,
		progress:  opts.ProgressNotify,
		results:   make(chan watch.Event, resultBuffer),
	}
	w.done, w.stop = context.WithCancel(ctx)
	w.release = context.AfterFunc(s.ended, w.stop)
	return w
}

// Stop implements [watch.Interface].
func (w *watcher) Stop() { w.stop() }

// ResultChan implements [watch.Interface]. It is closed when the watch ends.
func (w *watcher) ResultChan() <-chan watch.Event { return w.results }

// run sends events until the watch is stopped or fails, at once if err is not nil.
func (w *watcher) run(h *history, from beginning, err error) {
	defer close(w.results)
	defer w.stop()
	defer w.release()
	if err == nil {
		err = w.begin(h, from)
	}
	if err == nil {
		err = w.follow(h)
	}
	if w.done.Err() == nil {
		w.send(watch.Event{Type: watch.Error, Object: watchError(err)})
	}
}

// beginning says how a watch begins.
type beginning struct {
	// initial is whether what is there is sent first, marked whether a bookmark follows it.
	initial, marked bool
	// revision is the one after which changes are sent.
	revision int64
}

// beginningOf returns how a watch from a revision begins when it meets h.
func beginningOf(h *history, revision int64, opts storage.ListOptions) (beginning, error) {
	b := beginning{initial: revision == 0, revision: revision}
	if opts.SendInitialEvents != nil {
		b.initial, b.marked = *opts.SendInitialEvents, opts.Predicate.AllowWatchBookmarks
	}
	if b.initial && revision > h.revision {
		return b, storage.NewTooLargeResourceVersionError(uint64(revision), uint64(h.revision), 1)
	}
	if b.initial || revision == 0 {
		b.revision = h.revision
	}
	return b, nil
}

// begin sends the initial events if the client wants them.
func (w *watcher) begin(h *history, from beginning) error {
	w.seen, w.progressRequests = from.revision, h.progressRequests
	if !from.initial {
		w.told = from.revision
		return nil
	}
	for _, e := range h.list(h.revision, w.span, "") {
		event, err := w.events.initial(w.done, e)
		if err := w.sendIfAny(event, err); err != nil {
			return err
		}
	}
	if from.marked {
		return w.bookmark(h.revision, true)
	}
	return nil
}

// follow sends the events of h and of all histories after it.
func (w *watcher) follow(h *history) error {
	var timer <-chan time.Time
	var due bool
	for {
		if err := w.catchUp(h); err != nil {
			return err
		}
		untold := w.bookmarks && w.told < h.revision
		if due && untold {
			if err := w.bookmark(h.revision, false); err != nil {
				return err
			}
			untold = false
		}
		timer, due = w.bookmarkTimer(timer, untold), false
		// Which of several cases that are ready is chosen makes no difference: the watch catches up first in any case.
		select {
		case <-h.superseded:
		case <-timer:
			due = true
		case <-w.done.Done():
			return w.done.Err()
		}
		h = w.storage.current.Load()
	}
}

// bookmarkTimer returns a channel that says when a bookmark is due: the present one if there is one. It returns nil if
// there is nothing to tell.
func (w *watcher) bookmarkTimer(present <-chan time.Time, untold bool) <-chan time.Time {
	interval := w.storage.options.BookmarkInterval
	switch {
	case !untold || interval <= 0:
		return nil
	case present != nil:
		return present
	}
	return time.After(interval)
}

// catchUp sends what happened up to h.
func (w *watcher) catchUp(h *history) error {
	changes, err := h.since(w.seen)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !w.span.contains(c.key()) {
			continue
		}
		event, err := w.events.of(w.done, c)
		if err := w.sendIfAny(event, err); err != nil {
			return err
		}
		if event != nil {
			w.told = c.revision
		}
	}
	w.seen = max(w.seen, h.revision)
	if requested := h.progressRequests > w.progressRequests; requested {
		w.progressRequests = h.progressRequests
		if w.progress {
			return w.bookmark(w.seen, false)
		}
	}
	return nil
}

func (w *watcher) bookmark(revision int64, endOfInitial bool) error {
	event, err := w.events.bookmark(revision, endOfInitial)
	w.told = revision
	return w.sendIfAny(event, err)
}

// sendIfAny sends an event unless there is none or an error, which it returns.
func (w *watcher) sendIfAny(event *watch.Event, err error) error {
	if err != nil || event == nil {
		return err
	}
	return w.send(*event)
}

// send waits for the client to take an event. It returns an error if the watch is stopped first.
func (w *watcher) send(event watch.Event) error {
	if err := w.done.Err(); err != nil {
		return err
	}
	select {
	case w.results <- event:
		return nil
	case <-w.done.Done():
		return w.done.Err()
	}
}
