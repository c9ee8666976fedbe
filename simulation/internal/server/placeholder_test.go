package server_test

import (
	"context"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// memory is a minimal storage until there is the real one.
type memory struct {
	mu       sync.Mutex
	revision uint64
	items    map[string]item
	events   []event
	changed  chan struct{}
}

type item struct {
	data []byte
	rev  uint64
}

type event struct {
	key       string
	rev       uint64
	data, old []byte
}

func newMemory() *memory {
	return &memory{items: map[string]item{}, revision: 1, changed: make(chan struct{})}
}

func (m *memory) decorator(config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
	newFunc, newList func() runtime.Object, attrs storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	return &table{m, config.Codec, newFunc}, func() {}, nil
}

type table struct {
	*memory
	codec   runtime.Codec
	newFunc func() runtime.Object
}

var versioner = storage.APIObjectVersioner{}

func (t *table) Versioner() storage.Versioner                              { return versioner }
func (t *table) Stats(context.Context) (storage.Stats, error)              { return storage.Stats{}, nil }
func (t *table) ReadinessCheck() error                                     { return nil }
func (t *table) RequestWatchProgress(context.Context) error                { return nil }
func (t *table) EnableResourceSizeEstimation(storage.KeysFunc) error       { return nil }
func (t *table) CompactRevision() int64                                    { return 0 }
func (t *table) GetCurrentResourceVersion(context.Context) (uint64, error) { return t.revision, nil }

func (t *table) decode(data []byte, rev uint64, out runtime.Object) error {
	if out == nil {
		return nil
	}
	if u, ok := out.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(map[string]any{})
	} else {
		v := reflect.ValueOf(out).Elem()
		v.SetZero()
	}
	if _, _, err := t.codec.Decode(data, nil, out); err != nil {
		return err
	}
	return versioner.UpdateObject(out, rev)
}

func (t *table) put(key string, obj runtime.Object) ([]byte, error) {
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, err
	}
	return runtime.Encode(t.codec, obj)
}

func (t *table) store(key string, data []byte) uint64 {
	t.revision++
	old := t.items[key]
	t.items[key] = item{data, t.revision}
	t.events = append(t.events, event{key, t.revision, data, old.data})
	close(t.changed)
	t.changed = make(chan struct{})
	return t.revision
}

func (t *table) Create(_ context.Context, key string, obj, out runtime.Object, _ uint64) error {
	data, err := t.put(key, obj)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.items[key]; ok {
		return storage.NewKeyExistsError(key, int64(old.rev))
	}
	return t.decode(data, t.store(key, data), out)
}

func (t *table) Delete(ctx context.Context, key string, out runtime.Object, p *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.items[key]
	if !ok {
		return storage.NewKeyNotFoundError(key, 0)
	}
	obj := t.newFunc()
	if err := t.decode(old.data, old.rev, obj); err != nil {
		return err
	}
	if err := p.Check(key, obj); err != nil {
		return err
	}
	if err := validate(ctx, obj); err != nil {
		return err
	}
	rev := t.store(key, nil)
	delete(t.items, key)
	return t.decode(old.data, rev, out)
}

func (t *table) Get(_ context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.items[key]
	if !ok {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(key, 0)
	}
	return t.decode(old.data, old.rev, out)
}

func (t *table) GetList(_ context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []string
	for k := range t.items {
		if k == key || strings.HasPrefix(k, strings.TrimSuffix(key, "/")+"/") {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(ptr).Elem()
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for _, k := range keys {
		obj := t.newFunc()
		if err := t.decode(t.items[k].data, t.items[k].rev, obj); err != nil {
			return err
		}
		if ok, err := opts.Predicate.Matches(obj); err != nil || !ok {
			continue
		}
		v.Set(reflect.Append(v, reflect.ValueOf(obj).Elem()))
	}
	return versioner.UpdateList(list, t.revision, "", nil)
}

func (t *table) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool,
	p *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object) error {
	for {
		t.mu.Lock()
		old, ok := t.items[key]
		t.mu.Unlock()
		obj := t.newFunc()
		if !ok && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if ok {
			if err := t.decode(old.data, old.rev, obj); err != nil {
				return err
			}
		}
		if err := p.Check(key, obj); err != nil {
			return err
		}
		next, _, err := try(obj, storage.ResponseMeta{ResourceVersion: old.rev})
		if err != nil {
			return err
		}
		data, err := t.put(key, next)
		if err != nil {
			return err
		}
		if ok && string(data) == string(old.data) {
			return t.decode(data, old.rev, out)
		}
		t.mu.Lock()
		if t.items[key].rev != old.rev {
			t.mu.Unlock()
			continue
		}
		rev := t.store(key, data)
		t.mu.Unlock()
		return t.decode(data, rev, out)
	}
}

func (t *table) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{make(chan watch.Event), cancel}
	from, _ := strconv.ParseUint(opts.ResourceVersion, 10, 64)
	var initial []event
	if from == 0 || opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		for k, i := range t.items {
			initial = append(initial, event{k, i.rev, i.data, nil})
		}
		sort.Slice(initial, func(i, j int) bool { return initial[i].key < initial[j].key })
		from = t.revision
	}
	go func() {
		defer close(w.ch)
		send := func(kind watch.EventType, data []byte, rev uint64) bool {
			obj := t.newFunc()
			if err := t.decode(data, rev, obj); err != nil {
				panic(err)
			}
			if kind == watch.Bookmark {
				panic("no")
			}
			if ok, err := opts.Predicate.Matches(obj); err != nil || !ok {
				return true
			}
			select {
			case w.ch <- watch.Event{Type: kind, Object: obj}:
				return true
			case <-ctx.Done():
				return false
			}
		}
		matches := func(k string) bool { return k == key || strings.HasPrefix(k, strings.TrimSuffix(key, "/")+"/") }
		for _, e := range initial {
			if matches(e.key) && !send(watch.Added, e.data, e.rev) {
				return
			}
		}
		if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
			obj := t.newFunc()
			_ = versioner.UpdateObject(obj, from)
			a, _ := meta.Accessor(obj)
			a.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
			select {
			case w.ch <- watch.Event{Type: watch.Bookmark, Object: obj}:
			case <-ctx.Done():
				return
			}
		}
		for {
			t.mu.Lock()
			changed := t.changed
			var next []event
			for _, e := range t.events {
				if e.rev > from && matches(e.key) {
					next = append(next, e)
				}
			}
			from = t.revision
			t.mu.Unlock()
			for _, e := range next {
				kind, data := watch.Modified, e.data
				switch {
				case e.data == nil:
					kind, data = watch.Deleted, e.old
				case e.old == nil:
					kind = watch.Added
				}
				if !send(kind, data, e.rev) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

type watcher struct {
	ch     chan watch.Event
	cancel context.CancelFunc
}

func (w *watcher) Stop()                          { w.cancel() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.ch }
