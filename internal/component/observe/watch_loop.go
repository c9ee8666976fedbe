package observe

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/kinds"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// listTimeout is how long a list may take. A watch has no such limit.
	listTimeout = time.Minute
	// maxFailures is how many attempts to watch have to fail in a row until a type is polled that was watched before,
	// or for which there was no answer.
	maxFailures = 4
)

var (
	// watchBackoff spaces out attempts to watch. Many types may come back at the same time, and the jitter keeps them
	// from being asked for at the same time.
	watchBackoff = wait.Backoff{
		Duration: 800 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 7, Cap: 30 * time.Second,
	}
	// appearedBackoff is the same for a type that was missing.
	appearedBackoff = wait.Backoff{
		Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 10, Cap: 30 * time.Second,
	}
)

// pause waits for the next delay. It returns earlier if ctx is done.
func pause(ctx context.Context, backoff *wait.Backoff) {
	timer := time.NewTimer(backoff.Step())
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// start starts the goroutine of a type, unless it runs. The lock is held.
func (w *Watching) start(t *watchedType) {
	if t.stop != nil || t.stopped || w.stopped {
		return
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.root, w.options.Log))
	t.stop = cancel
	w.running.Go(func() {
		defer cancel()
		w.watchType(ctx, t)
	})
}

// run watches a type until ctx is done.
func (w *Watching) run(ctx context.Context, t *watchedType) {
	backoff := watchBackoff
	var reflector *cache.Reflector
	var reflected schema.GroupVersionResource
	for ctx.Err() == nil {
		w.mu.Lock()
		phase, at, doubted := t.phase, t.resource, t.doubted
		w.mu.Unlock()
		switch {
		case phase == missing:
			backoff, reflector = appearedBackoff, nil
			select {
			case <-ctx.Done():
			case <-t.signal:
			}
			continue
		case at.Empty() || doubted:
			if w.relocate(ctx, t, at, doubted) {
				continue
			}
		default:
			if reflector == nil || reflected != at {
				reflector, reflected = w.newReflector(t, at), at
			}
			if w.watch(ctx, t, reflector) {
				backoff = watchBackoff
			}
		}
		pause(ctx, &backoff)
	}
}

// watch watches until the watch ends, and reports whether it worked.
func (w *Watching) watch(ctx context.Context, t *watchedType, reflector *cache.Reflector) bool {
	w.mu.Lock()
	t.listed = false
	w.mu.Unlock()
	err := reflector.ListAndWatchWithContext(ctx)
	failed := err != nil && ctx.Err() == nil
	denied := failed && classify(err) == unserved
	switch {
	case !failed, denied:
	case t.listed: // Only this goroutine sets it.
		w.unwatchable(t, err, "watched")
	default:
		w.unwatchable(t, err, "listed")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.doubted = denied; denied && t.lag > 0 {
		t.lag--
		t.doubted = false
	}
	return t.failures == 0 && !denied
}

// unwatchable handles an error that keeps a type from being watched; see the table of watchedType.
func (w *Watching) unwatchable(t *watchedType, err error, verb string) {
	class := classify(err)
	w.locked(func(wake *wakeups) {
		if t.stopped {
			return
		}
		t.failures++
		if class.aboutServer() && t.wasLive || (class.aboutServer() || t.wasLive) && t.failures < maxFailures {
			return
		}
		reason := class.watchReason(verb)
		if t.phase == polled && t.reason == reason {
			return
		}
		w.options.Log.Info("a type is polled", "type", t.GroupKind.String(), "reason", reason)
		t.phase, t.reason, t.unlistable = polled, reason, nil
		wake.low = true
		t.notifyUsers(wake)
	})
}

// setLive makes a type live if its watch works. The lock is held.
func (w *Watching) setLive(t *watchedType, wake *wakeups) {
	if t.stopped || !t.listed || t.stream == nil {
		return
	}
	t.failures = 0
	if t.phase == live {
		return
	}
	if t.phase == polled {
		w.options.Log.Info("a type is watched", "type", t.GroupKind.String())
	}
	t.phase, t.reason, t.wasLive, t.unlistable = live, "", true, nil
	wake.low = true
	t.notifyUsers(wake)
}

// lost handles that the API server does not serve a type any more: none of its objects exist.
func (w *Watching) lost(t *watchedType) {
	w.locked(func(wake *wakeups) {
		if !t.stopped && t.phase != missing {
			w.setMissing(t)
			// Its definition may say that it is served.
			w.signalDefined()
			t.notifyUsers(wake)
		}
	})
}

// setMissing makes a type one that is not served. The lock is held.
func (w *Watching) setMissing(t *watchedType) {
	w.options.Log.V(1).Info("a type is not served", "type", t.GroupKind.String())
	t.phase, t.reason, t.wasLive, t.failures = missing, "", false, 0
	t.resource, t.doubted, t.unlistable = schema.GroupVersionResource{}, false, nil
	t.progress = ""
	for name, at := range t.slots {
		at.shown = nil
		for _, e := range at.entries {
			e.response, e.deletion, e.evaluation, e.failure, e.fieldsOf = nil, nil, nil, nil, nil
			w.endNameWatch(e)
		}
		t.dropEmpty(name)
	}
}

// newReflector returns the reflector that watches a type: metadata, or full objects for Secrets, whose data is
// compared.
func (w *Watching) newReflector(t *watchedType, at schema.GroupVersionResource) *cache.Reflector {
	var expected runtime.Object = &metav1.PartialObjectMetadata{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return w.metadata.Resource(at).List(ctx, o)
	}
	open := w.metadata.Resource(at).Watch
	if t.GroupKind == kinds.Secret {
		expected = &corev1.Secret{}
		list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return w.core.Secrets("").List(ctx, o)
		}
		open = w.core.Secrets("").Watch
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = w.extractor.label
			limited, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			return list(limited, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = w.extractor.label
			return w.open(ctx, t, o, open)
		},
	}
	log := w.options.Log
	return cache.NewReflectorWithOptions(lw, expected, &reflectorStore{watching: w, typ: t}, cache.ReflectorOptions{
		Name:            t.GroupKind.String(),
		TypeDescription: t.GroupKind.String(),
		Logger:          &log,
	})
}

// open opens a watch. While there is no answer it tries again, so that the watch goes on where it ended. The reflector
// would try again too, but its delay does not end with ctx.
func (w *Watching) open(ctx context.Context, t *watchedType, o metav1.ListOptions,
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	for backoff := watchBackoff; ; pause(ctx, &backoff) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		opened, err := open(ctx, o)
		if err == nil {
			s := &stream{Interface: opened, watching: w, typ: t}
			w.locked(func(wake *wakeups) {
				t.stream = s
				w.setLive(t, wake)
			})
			return s, nil
		}
		if !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err) {
			return nil, err
		}
		w.unwatchable(t, err, "watched")
	}
}

// stream is an open watch that records when it ends.
type stream struct {
	watch.Interface
	watching *Watching
	typ      *watchedType
}

// Stop implements [watch.Interface]. The reflector calls it when it has read the last event.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.watching.mu.Lock()
	defer s.watching.mu.Unlock()
	if s.typ.stream == s {
		s.typ.stream = nil
	}
}
