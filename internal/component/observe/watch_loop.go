package observe

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/kinds"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// maxFailures is how many attempts to watch have to fail in a row until a type is polled that was watched before, or
// for which there was no answer.
const maxFailures = 4

// appearedBackoff is [informer.WatchBackoff] for a type that was missing, or served elsewhere.
var appearedBackoff = wait.Backoff{
	Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 10, Cap: 30 * time.Second,
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
	backoff := informer.WatchBackoff
	var reflector *cache.Reflector
	var reflected schema.GroupVersionResource
	for denied := false; ctx.Err() == nil; denied = true {
		w.mu.Lock()
		phase, at, doubted := t.phase, t.resource, t.doubted
		w.mu.Unlock()
		switch {
		case phase == missing:
			backoff, reflector = appearedBackoff, nil
			w.awaitServed(ctx, t, denied)
			continue
		case at.Empty() || doubted:
			if w.relocate(ctx, t, at, doubted) {
				continue
			}
		default:
			if reflector != nil && reflected != at {
				backoff = appearedBackoff
			}
			if reflector == nil || reflected != at {
				reflector, reflected = w.newReflector(t, at), at
			}
			if w.watch(ctx, t, reflector) {
				backoff = informer.WatchBackoff
			}
		}
		t.pause(ctx, backoff.Step())
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
	name, store := t.GroupKind.String(), w.storeOf(t)
	labelled := func(o *metav1.ListOptions) { o.LabelSelector = w.extractor.label }
	if t.GroupKind == kinds.Secret {
		secrets := w.core.Secrets("")
		return informer.NewReflector(w.options.Log, name, &corev1.Secret{}, secrets.List, w.opens(t, secrets.Watch),
			labelled, store)
	}
	objects := w.metadata.Resource(at)
	return informer.NewReflector(w.options.Log, name, &metav1.PartialObjectMetadata{}, objects.List,
		w.opens(t, objects.Watch), labelled, store)
}

type openFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)

// opens returns a function that opens a watch. While there is no answer it tries again, so that the watch goes on where
// it ended. The reflector would try again too, but its delay does not end with ctx.
func (w *Watching) opens(t *watchedType, open openFunc) openFunc {
	return func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		for backoff := informer.WatchBackoff; ctx.Err() == nil; informer.Pause(ctx, backoff.Step()) {
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
		return nil, ctx.Err()
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
