package testing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldIndex is an index of a field.
type fieldIndex struct {
	of      watchedType
	field   string
	extract client.IndexerFunc
}

// setupCache is a cache whose informers have no objects. Events are what a test announces.
type setupCache struct {
	client.Reader
	scheme *runtime.Scheme

	mu        sync.Mutex
	informers map[watchedType]*setupInformer
	indexes   []fieldIndex
	failures  []string
}

var _ cache.Cache = (*setupCache)(nil)

func newSetupCache(scheme *runtime.Scheme) *setupCache {
	return &setupCache{scheme: scheme, informers: map[watchedType]*setupInformer{}}
}

func (c *setupCache) informer(w watchedType) *setupInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.informers[w] == nil {
		c.informers[w] = &setupInformer{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})}
	}
	return c.informers[w]
}

// problems are what a cache with a cluster would not have let pass.
func (c *setupCache) problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.failures)
}

// watched returns the types that are watched, as often as they are, sorted.
func (c *setupCache) watched() []watchedType {
	c.mu.Lock()
	defer c.mu.Unlock()
	var watched []watchedType
	for w, i := range c.informers {
		watched = append(watched, slices.Repeat([]watchedType{w}, len(i.registered()))...)
	}
	slices.SortFunc(watched, func(a, b watchedType) int { return cmp.Compare(a.String(), b.String()) })
	return watched
}

// indexed returns the indexes, sorted.
func (c *setupCache) indexed() []fieldIndex {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(slices.Values(c.indexes), func(a, b fieldIndex) int {
		return cmp.Compare(a.of.String()+" by "+a.field, b.of.String()+" by "+b.field)
	})
}

// announce tells the informers of a kind that an object changed. Without a before it came into being, without an after
// it is gone, without both nothing happens.
func (c *setupCache) announce(before, after client.Object) error {
	obj := after
	if isNil(obj) {
		obj = before
	}
	if isNil(obj) {
		return nil
	}
	kind, err := kindOf(realObject(obj), c.scheme)
	if err != nil {
		return err
	}
	for _, f := range []form{typedForm, unstructuredForm, metadataForm} {
		w := watchedType{kind: kind, form: f}
		c.mu.Lock()
		informer := c.informers[w]
		c.mu.Unlock()
		if informer == nil {
			continue
		}
		if err := informer.announce(w, c.scheme, before, after); err != nil {
			return err
		}
	}
	return nil
}

// GetInformer implements [cache.Informers]. A type that no cache can have an informer for fails the test in the end: an
// error would be tried again for minutes.
func (c *setupCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	w, err := watchedTypeOf(obj, c.scheme)
	if err != nil {
		c.mu.Lock()
		c.failures = append(c.failures, fmt.Sprintf("%T cannot be watched: %s", obj, err))
		c.mu.Unlock()
		return &setupInformer{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})}, nil
	}
	return c.informer(w), nil
}

// GetInformerForKind implements [cache.Informers].
func (c *setupCache) GetInformerForKind(
	ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	made, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be watched", made)
	}
	return c.GetInformer(ctx, obj, opts...)
}

// RemoveInformer implements [cache.Informers].
func (c *setupCache) RemoveInformer(_ context.Context, obj client.Object) error {
	w, err := watchedTypeOf(obj, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.informers, w)
	return nil
}

// IndexField implements [client.FieldIndexer].
func (c *setupCache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	w, err := watchedTypeOf(obj, c.scheme)
	if err != nil {
		return err
	}
	none := func(any) ([]string, error) { return nil, nil }
	if err := c.informer(w).AddIndexers(toolscache.Indexers{"field:" + field: none}); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexes = append(c.indexes, fieldIndex{of: w, field: field, extract: extract})
	return nil
}

// Start implements [cache.Informers].
func (c *setupCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements [cache.Informers].
func (c *setupCache) WaitForCacheSync(context.Context) bool { return true }

// setupInformer hands what is announced to its handlers.
type setupInformer struct {
	indexer toolscache.Indexer

	mu       sync.Mutex
	handlers []*setupHandler
}

var _ cache.Informer = (*setupInformer)(nil)

func (i *setupInformer) registered() []*setupHandler {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.handlers)
}

// announce hands a change to the handlers. Each gets objects of its own, so that one that changes them shows in no other.
func (i *setupInformer) announce(w watchedType, scheme *runtime.Scheme, before, after client.Object) error {
	for _, h := range i.registered() {
		var was, is client.Object
		var err error
		if !isNil(before) {
			if was, err = w.of(realObject(before), scheme); err != nil {
				return err
			}
		}
		if !isNil(after) {
			if is, err = w.of(realObject(after), scheme); err != nil {
				return err
			}
		}
		switch {
		case was == nil:
			h.OnAdd(is, false)
		case is == nil:
			h.OnDelete(was)
		default:
			h.OnUpdate(was, is)
		}
	}
	return nil
}

// AddEventHandler implements [cache.Informer].
func (i *setupInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	registered := &setupHandler{ResourceEventHandler: h}
	i.handlers = append(i.handlers, registered)
	return registered, nil
}

// AddEventHandlerWithResyncPeriod implements [cache.Informer].
func (i *setupInformer) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, _ time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements [cache.Informer].
func (i *setupInformer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements [cache.Informer].
func (i *setupInformer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(h *setupHandler) bool { return h == registration })
	return nil
}

// AddIndexers implements [cache.Informer].
func (i *setupInformer) AddIndexers(indexers toolscache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}

// HasSynced implements [cache.Informer].
func (i *setupInformer) HasSynced() bool { return true }

// HasSyncedChecker implements [cache.Informer].
func (i *setupInformer) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

// IsStopped implements [cache.Informer].
func (i *setupInformer) IsStopped() bool { return false }

// setupHandler is a handler, and its registration.
type setupHandler struct {
	toolscache.ResourceEventHandler
}

// HasSynced implements [toolscache.ResourceEventHandlerRegistration].
func (*setupHandler) HasSynced() bool { return true }

// HasSyncedChecker implements [toolscache.ResourceEventHandlerRegistration].
func (*setupHandler) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

// always is closed.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// synced is done from the start.
type synced struct{}

// Name implements [toolscache.DoneChecker].
func (synced) Name() string { return "set-up case" }

// Done implements [toolscache.DoneChecker].
func (synced) Done() <-chan struct{} { return always }
