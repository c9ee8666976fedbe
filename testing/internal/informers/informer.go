package informers

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/testing/internal/random"
)

// New returns what makes the informers of an actor: the field NewInformer of the options of controller-runtime's cache.
func New(seed uint64, actor string) func(
	cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers,
) cache.SharedIndexInformer {
	return func(
		lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
	) cache.SharedIndexInformer {
		return &informer{
			SharedIndexInformer: cache.NewSharedIndexInformer(lw, example, resync, indexers),
			seed:                seed,
			name:                fmt.Sprintf("%s %T %s", actor, example, example.GetObjectKind().GroupVersionKind()),
		}
	}
}

// informer is a shared informer whose orders a seed decides.
type informer struct {
	cache.SharedIndexInformer
	seed uint64
	// name is that of the actor and the kind.
	name string
	// handlers is how many there have been.
	handlers atomic.Int64
}

// GetStore implements [cache.SharedInformer].
func (i *informer) GetStore() cache.Store { return i.GetIndexer() }

// GetIndexer implements [cache.SharedIndexInformer].
func (i *informer) GetIndexer() cache.Indexer { return indexer{i.SharedIndexInformer.GetIndexer(), i} }

// AddEventHandler implements [cache.SharedInformer].
func (i *informer) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(to, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements [cache.SharedInformer].
func (i *informer) AddEventHandlerWithResyncPeriod(
	to cache.ResourceEventHandler, resync time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(to, cache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions implements [cache.SharedInformer].
func (i *informer) AddEventHandlerWithOptions(
	to cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	n := strconv.FormatInt(i.handlers.Add(1), 10)
	h := &handler{to: to, random: random.Source(i.seed, "handler", i.name, n), added: time.Now()}
	r, err := i.SharedIndexInformer.AddEventHandlerWithOptions(h, options)
	if err != nil {
		return nil, err
	}
	return registration{r, h}, nil
}

// RemoveEventHandler implements [cache.SharedInformer].
func (i *informer) RemoveEventHandler(r cache.ResourceEventHandlerRegistration) error {
	if ours, ok := r.(registration); ok {
		r = ours.ResourceEventHandlerRegistration
	}
	return i.SharedIndexInformer.RemoveEventHandler(r)
}

// registration is that of a handler. HasSyncedChecker is done when the events are on their way to the handler: who
// waits for it may hold a lock, and then no time passes for all who wait for the lock.
type registration struct {
	cache.ResourceEventHandlerRegistration
	handler *handler
}

// HasSynced implements [cache.ResourceEventHandlerRegistration]. It does not report true in the moment in which the
// handler is added, for whether it could depends on the scheduler.
func (r registration) HasSynced() bool {
	return time.Now().After(r.handler.added) && r.ResourceEventHandlerRegistration.HasSynced() && r.handler.idle()
}
