package fakemanager

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
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/espalier-dev/espalier/internal/emptywatch"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// Index is an index of a field.
type Index struct {
	Of    Type
	Field string
}

// String returns the index as failure messages name it.
func (i Index) String() string { return i.Of.String() + " by " + i.Field }

// Cache is a cache whose informers have no objects. Only a test sends events.
type Cache struct {
	client.Reader
	scheme *runtime.Scheme
	// fake is the client that finds objects by the indexes.
	fake client.Client

	mu        sync.Mutex
	informers map[Type]*informer
	indexes   []Index
	problems  []string
}

var _ cache.Cache = (*Cache)(nil)

func (c *Cache) informer(t Type) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.informers[t] == nil {
		c.informers[t] = newInformer()
	}
	return c.informers[t]
}

// Problems returns what a cache with a cluster would have refused.
func (c *Cache) Problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}

// Watched returns the types that are watched, sorted, each as often as a handler that events can reach watches it.
func (c *Cache) Watched() []Type {
	c.mu.Lock()
	defer c.mu.Unlock()
	var watched []Type
	for t, i := range c.informers {
		for _, h := range i.registered() {
			if !emptywatch.Is(h.ResourceEventHandler) {
				watched = append(watched, t)
			}
		}
	}
	slices.SortFunc(watched, func(a, b Type) int { return cmp.Compare(a.String(), b.String()) })
	return watched
}

// Indexed returns the indexes, sorted.
func (c *Cache) Indexed() []Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	indexes := slices.Clone(c.indexes)
	slices.SortFunc(indexes, func(a, b Index) int { return cmp.Compare(a.String(), b.String()) })
	return indexes
}

// Send sends a change of an object to the informers of its kind. The object is created if before is nil, and deleted if
// after is nil. If both are nil nothing happens.
func (c *Cache) Send(before, after client.Object) error {
	obj := after
	if gotype.IsNil(obj) {
		obj = before
	}
	if gotype.IsNil(obj) {
		return nil
	}
	kind, err := objects.KindOf(objects.Copy(obj), c.scheme)
	if err != nil {
		return err
	}
	for _, f := range []form{typedForm, unstructuredForm, metadataForm} {
		t := Type{kind: kind, form: f}
		c.mu.Lock()
		informer := c.informers[t]
		c.mu.Unlock()
		if informer == nil {
			continue
		}
		if err := informer.send(t, c.scheme, before, after); err != nil {
			return err
		}
	}
	return nil
}

// GetInformer implements [cache.Informers]. A type that no cache can have an informer for is a problem rather than an
// error: after an error, a controller would try again for minutes.
func (c *Cache) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	t, err := TypeOf(obj, c.scheme)
	if err != nil {
		c.mu.Lock()
		c.problems = append(c.problems, fmt.Sprintf("%T cannot be watched: %s", obj, err))
		c.mu.Unlock()
		return newInformer(), nil
	}
	return c.informer(t), nil
}

// GetInformerForKind implements [cache.Informers].
func (c *Cache) GetInformerForKind(
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
func (c *Cache) RemoveInformer(_ context.Context, obj client.Object) error {
	t, err := TypeOf(obj, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.informers, t)
	return nil
}

// IndexField implements [client.FieldIndexer].
func (c *Cache) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	t, err := TypeOf(obj, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.indexes, Index{t, field}) {
		return fmt.Errorf("the index of %s is there already", Index{t, field})
	}
	c.indexes = append(c.indexes, Index{t, field})
	// The fake client has one index for all forms of a kind: for a further form, or for an index of the test's own, it
	// returns an error, and keeps the first.
	_ = fake.AddIndex(c.fake, obj, field, func(stored client.Object) []string {
		converted, err := t.convert(stored, c.scheme)
		if err != nil {
			return nil
		}
		return extract(converted)
	})
	return nil
}

// Start implements [cache.Informers].
func (c *Cache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements [cache.Informers].
func (c *Cache) WaitForCacheSync(context.Context) bool { return true }

// informer sends events to its handlers. It has no objects.
type informer struct {
	*controllertest.FakeInformer

	mu       sync.Mutex
	handlers []*handler
}

// handler is a handler, and its registration.
type handler struct {
	toolscache.ResourceEventHandler
	toolscache.ResourceEventHandlerRegistration
}

var _ cache.Informer = (*informer)(nil)

func newInformer() *informer {
	return &informer{FakeInformer: controllertest.NewFakeInformer(controllertest.Synced)}
}

func (i *informer) registered() []*handler {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.handlers)
}

// send sends a change to the handlers. Each gets copies of the objects: a handler that changes them affects no other.
func (i *informer) send(t Type, scheme *runtime.Scheme, before, after client.Object) error {
	for _, h := range i.registered() {
		var was, is client.Object
		var err error
		if !gotype.IsNil(before) {
			if was, err = t.convert(objects.Copy(before), scheme); err != nil {
				return err
			}
		}
		if !gotype.IsNil(after) {
			if is, err = t.convert(objects.Copy(after), scheme); err != nil {
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
func (i *informer) AddEventHandler(
	h toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	synced, err := i.FakeInformer.AddEventHandler(h)
	if err != nil {
		return nil, err
	}
	registered := &handler{h, synced}
	i.handlers = append(i.handlers, registered)
	return registered, nil
}

// AddEventHandlerWithResyncPeriod implements [cache.Informer].
func (i *informer) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, _ time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// AddEventHandlerWithOptions implements [cache.Informer].
func (i *informer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// RemoveEventHandler implements [cache.Informer].
func (i *informer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(h *handler) bool { return h == registration })
	return nil
}
