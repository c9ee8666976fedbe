package informer

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// listTimeout is how long a list may take. A watch has no such limit.
const listTimeout = time.Minute

// WatchBackoff spaces out attempts to watch. Many types may come back at the same time, and the jitter keeps them from
// being asked for at the same time.
var WatchBackoff = utilwait.Backoff{
	Duration: 800 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 7, Cap: 30 * time.Second,
}

// Pause waits for a delay. It returns earlier if ctx is done.
func Pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Events is a store that passes on what a [toolscache.Reflector] brings, and keeps nothing.
type Events struct {
	// Replaced gets all objects when they were listed at a resource version.
	Replaced func(objects []any, version string) error
	// Shown gets the object of each event.
	Shown func(object any, deleted bool) error
}

var _ toolscache.ReflectorStore = Events{}

// Add implements [toolscache.ReflectorStore].
func (e Events) Add(object any) error { return e.Shown(object, false) }

// Update implements [toolscache.ReflectorStore].
func (e Events) Update(object any) error { return e.Shown(object, false) }

// Delete implements [toolscache.ReflectorStore].
func (e Events) Delete(object any) error { return e.Shown(object, true) }

// Replace implements [toolscache.ReflectorStore].
func (e Events) Replace(objects []any, version string) error { return e.Replaced(objects, version) }

// Resync implements [toolscache.ReflectorStore]. There is nothing to do, because nothing is kept.
func (e Events) Resync() error { return nil }

// NewReflector returns a reflector of objects like expected. Both functions get options that were passed to limit,
// unless that is nil.
func NewReflector[L runtime.Object](
	log logr.Logger, name string, expected runtime.Object, list func(context.Context, metav1.ListOptions) (L, error),
	open func(context.Context, metav1.ListOptions) (watch.Interface, error), limit func(*metav1.ListOptions),
	store toolscache.ReflectorStore,
) *toolscache.Reflector {
	if limit == nil {
		limit = func(*metav1.ListOptions) {}
	}
	return toolscache.NewReflectorWithOptions(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			limit(&o)
			limited, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			return list(limited, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			limit(&o)
			return open(ctx, o)
		},
	}, expected, store, toolscache.ReflectorOptions{Name: name, TypeDescription: name, Logger: &log})
}
