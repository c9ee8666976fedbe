package observe

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// paceFirst and paceLast are the first and the longest delay between attempts to watch.
	paceFirst = 800 * time.Millisecond
	paceLast  = 30 * time.Second
	// listTimeout is how long a list may take. A watch has no such limit.
	listTimeout = time.Minute
	// patience is how many attempts to watch have to fail in a row until a type is polled that could be watched before, or that
	// nobody answers for.
	patience = 4
)

// start starts the goroutine of a type, unless it runs. The lock is held.
func (w *Watching) start(k *kind) {
	if k.stop != nil || k.stopped || w.stopped {
		return
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.root, w.options.Log))
	k.stop = cancel
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer cancel()
		w.launch(ctx, k)
	}()
}

// run watches a type until ctx is done.
func (w *Watching) run(ctx context.Context, k *kind) {
	var pace pace
	var reflector *cache.Reflector
	var at schema.GroupVersionResource
	for ctx.Err() == nil {
		where, ok := w.seek(ctx, k)
		switch {
		case ctx.Err() != nil:
			return
		case where.Empty() && !ok:
			pace.wait(ctx)
			continue
		case where.Empty():
			if !w.await(ctx, k) {
				return
			}
			pace, reflector = 0, nil
			continue
		}
		if reflector == nil || at != where {
			reflector, at = w.reflect(k, where), where
		}
		w.watch(ctx, k, reflector)
		if w.healthy(k) {
			pace = 0
		}
		pace.wait(ctx)
	}
}

// seek returns where a type is served: nowhere if it is empty. ok is false if that could not be found out.
func (w *Watching) seek(ctx context.Context, k *kind) (at schema.GroupVersionResource, ok bool) {
	w.mu.Lock()
	before, doubted, phase := k.resource, k.doubted, k.phase
	w.mu.Unlock()
	if phase == missing || !before.Empty() && !doubted {
		return before, true
	}
	found, served, err := w.locate(ctx, k.GroupKind, doubted)
	switch {
	case ctx.Err() != nil:
		return found, false
	case err != nil:
		w.unwatchable(k, err, "listed")
		return schema.GroupVersionResource{}, false
	case doubted && found == before:
		// It is served after all, so its API is at odds with itself.
		w.unwatchable(k, apierrors.NewServiceUnavailable(""), "listed")
	case doubted:
		meta.MaybeResetRESTMapper(w.options.Mapper)
	}
	if !served {
		w.lost(k)
		return schema.GroupVersionResource{}, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k.resource, k.doubted = found, false
	return found, true
}

// watch watches until it cannot any more.
func (w *Watching) watch(ctx context.Context, k *kind, reflector *cache.Reflector) {
	w.mu.Lock()
	k.listed, k.opened = false, false
	w.mu.Unlock()
	err := reflector.ListAndWatchWithContext(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	verb := "listed"
	if k.listed {
		verb = "watched"
	}
	if diagnose(err) == unserved {
		k.doubted = true
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	w.unwatchable(k, err, verb)
}

// healthy tells whether the watch worked.
func (w *Watching) healthy(k *kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return k.failures == 0 && !k.doubted
}

// unwatchable takes in that a type cannot be watched.
func (w *Watching) unwatchable(k *kind, err error, verb string) {
	found := diagnose(err)
	w.locked(func(b *bell) {
		if k.stopped {
			return
		}
		k.failures++
		switch {
		case found.passing() && k.known:
			// What was last known is the best there is.
			return
		case (found.passing() || k.known) && k.failures < patience:
			return
		}
		reason := found.watching(verb)
		if k.phase == polled && k.reason == reason {
			return
		}
		w.options.Log.Info("a type is polled", "type", k.GroupKind.String(), "reason", reason)
		k.phase, k.reason, k.unlistable = polled, reason, nil
		b.low = true
		k.tellUsers(b)
	})
}

// lost takes in that the API server does not serve a type: none of its objects exist.
func (w *Watching) lost(k *kind) {
	w.locked(func(b *bell) {
		if k.stopped || k.phase == missing {
			return
		}
		w.miss(k)
		k.tellUsers(b)
	})
}

// miss makes a type one that is not served. The lock is held.
func (w *Watching) miss(k *kind) {
	w.options.Log.V(1).Info("a type is not served", "type", k.GroupKind.String())
	k.phase, k.reason, k.known, k.failures = missing, "", false, 0
	k.resource, k.doubted, k.unlistable = schema.GroupVersionResource{}, false, nil
	k.progress = ""
	for name, c := range k.cells {
		c.sight = nil
		c.each(func(e *entry) { e.answer, e.verdict, e.going, e.failure, e.fieldsOf = nil, nil, nil, nil, nil })
		k.sweep(name)
	}
}

// tellUsers lets all components know that the state of the type has changed.
func (k *kind) tellUsers(b *bell) {
	for s := range k.users {
		if b.low {
			s.hint(b)
			continue
		}
		s.urge(b)
	}
}

// reflect returns what watches a type.
func (w *Watching) reflect(k *kind, at schema.GroupVersionResource) *cache.Reflector {
	var expected runtime.Object = &metav1.PartialObjectMetadata{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return w.metadata.Resource(at).List(ctx, o)
	}
	open := w.metadata.Resource(at).Watch
	if k.confidential {
		expected = &corev1.Secret{}
		list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return w.core.Secrets("").List(ctx, o)
		}
		open = w.core.Secrets("").Watch
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = w.lens.label
			w.mu.Lock()
			// A watch that was opened to begin with a list has failed.
			k.opened = false
			w.mu.Unlock()
			limited, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			return list(limited, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = w.lens.label
			return w.open(ctx, k, o, open)
		},
	}
	log := w.options.Log
	return cache.NewReflectorWithOptions(lw, expected, &store{watching: w, kind: k}, cache.ReflectorOptions{
		Name:            k.GroupKind.String(),
		TypeDescription: k.GroupKind.String(),
		Logger:          &log,
	})
}

// open opens a watch. While nobody answers it tries again, so that the watch goes on where it ended.
func (w *Watching) open(ctx context.Context, k *kind, o metav1.ListOptions,
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	var pace pace
	for {
		opened, err := open(ctx, o)
		switch {
		case err == nil:
			lasting := &stream{Interface: opened, watching: w, kind: k}
			w.locked(func(b *bell) {
				k.opened, k.stream = true, lasting
				w.enliven(k, b)
			})
			return lasting, nil
		case !transient(err):
			return nil, err
		}
		w.unwatchable(k, err, "watched")
		if !pace.wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// stream is an open watch, of which is noted when it ends.
type stream struct {
	watch.Interface
	watching *Watching
	kind     *kind
}

// Stop implements [watch.Interface]. Whoever reads the events calls it when there are no more.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.watching.mu.Lock()
	defer s.watching.mu.Unlock()
	if s.kind.stream == s {
		s.kind.stream = nil
	}
}

// enliven makes a type live if its watch works. The lock is held.
func (w *Watching) enliven(k *kind, b *bell) {
	if k.stopped || !k.listed || !k.opened {
		return
	}
	k.failures = 0
	if k.phase == live {
		return
	}
	if k.phase == polled {
		w.options.Log.Info("a type is watched", "type", k.GroupKind.String())
	}
	k.phase, k.reason, k.known, k.unlistable = live, "", true, nil
	b.low = true
	k.tellUsers(b)
}

// pace spaces out attempts.
type pace time.Duration

// wait waits longer each time. It returns false if ctx is done.
func (p *pace) wait(ctx context.Context) bool {
	*p = min(max(*p*2, pace(paceFirst)), pace(paceLast))
	// Many types whose API comes back at the same time must not all be asked for at the same time.
	return sleep(ctx, time.Duration(*p)+rand.N(time.Duration(*p)/4))
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
