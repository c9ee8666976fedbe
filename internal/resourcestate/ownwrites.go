package resourcestate

import (
	"context"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLag is how long a cache may lag behind a write. After that the cache is believed, because resource versions go
// back when a cluster is restored from a backup. The time is measured from the start of the request that wrote.
const maxLag = 10 * time.Minute

// OwnWrites are the last writes of objects that a cache may not show yet. They keep a request from acting on a state of
// an object that is older than what the controller itself wrote: nothing is created twice, deleted twice, or updated
// from an older state. The zero value is ready for use, also concurrently.
//
// What is believed of an object:
//
//	own write          the cache shows               believed
//	none               anything                      the cache
//	create or update   an older version              the write
//	create or update   the same or a newer version   the cache
//	create             nothing                       the API server, which is asked
//	update             nothing                       the cache: the object is gone
//	delete             an object that lives          nothing is there
//	delete             a terminating one, or none    the cache
//
// After ten minutes, and where versions cannot be compared, the cache is believed.
type OwnWrites struct {
	mu    sync.Mutex
	byKey map[writeKey]*ownWrite
}

// writeKey identifies an object: by UID, and by type and name only where there is none, as in tests.
type writeKey struct {
	uid  types.UID
	typ  reflect.Type
	name types.NamespacedName
}

func writeKeyOf(obj client.Object) writeKey {
	if uid := obj.GetUID(); uid != "" {
		return writeKey{uid: uid}
	}
	return writeKey{typ: reflect.TypeOf(obj), name: client.ObjectKeyFromObject(obj)}
}

type ownWrite struct {
	// object is what the API server answered; nil for a delete.
	object client.Object
	// created is true until the cache shows the object for the first time.
	created bool
	at      time.Time
}

// Wrote notes that written is the answer of the API server to a write. Created is true for a create. The object belongs
// to the writes from then on.
func (w *OwnWrites) Wrote(written client.Object, created bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := writeKeyOf(written)
	if known, ok := w.byKey[key]; ok {
		created = created || known.created
	}
	w.put(key, &ownWrite{object: written, created: created, at: now})
}

// Deleted notes that obj was deleted.
func (w *OwnWrites) Deleted(obj client.Object, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(writeKeyOf(obj), &ownWrite{at: now})
}

func (w *OwnWrites) put(key writeKey, write *ownWrite) {
	if w.byKey == nil {
		w.byKey = map[writeKey]*ownWrite{}
	}
	w.byKey[key] = write
}

// Resolve returns what is believed of an object that the cache shows: cached itself, a copy of what was written last,
// or nil if the object was deleted. A write that the cache has caught up with is forgotten.
func (w *OwnWrites) Resolve(cached client.Object, now time.Time) client.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byKey) == 0 {
		return cached
	}
	key := writeKeyOf(cached)
	write, ok := w.byKey[key]
	if !ok {
		return cached
	}
	write.created = false
	switch {
	case now.Sub(write.at) > maxLag:
	case write.object == nil && cached.GetDeletionTimestamp() == nil:
		return nil
	case write.object != nil && lags(cached, write.object):
		return write.object.DeepCopyObject().(client.Object)
	}
	delete(w.byKey, key)
	return cached
}

// lags reports whether cached is older than written. Versions that cannot be compared say nothing.
func lags(cached, written client.Object) bool {
	if written.GetDeletionTimestamp() != nil && cached.GetDeletionTimestamp() == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err == nil && order < 0
}

// Unseen returns copies of the objects that were created and are missing in shown, what the cache shows: it may not
// show them yet, or not any more. The API server is asked; without a reader they count as there for as long as a cache
// may lag. All other writes of missing objects are forgotten.
func (w *OwnWrites) Unseen(
	ctx context.Context, reader client.Reader, shown []client.Object, now time.Time,
) ([]client.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byKey) == 0 {
		return nil, nil
	}
	seen := make(map[writeKey]bool, len(shown))
	for _, obj := range shown {
		seen[writeKeyOf(obj)] = true
	}
	var unseen []client.Object
	for key, write := range w.byKey {
		if seen[key] {
			continue
		}
		alive, err := confirm(ctx, reader, write, now)
		if err != nil {
			return nil, err
		}
		if alive == nil {
			delete(w.byKey, key)
			continue
		}
		write.object = alive
		unseen = append(unseen, alive.DeepCopyObject().(client.Object))
	}
	return unseen, nil
}

// confirm returns the object of a write that the cache does not show, or nil if it is gone.
func confirm(ctx context.Context, reader client.Reader, write *ownWrite, now time.Time) (client.Object, error) {
	switch {
	case !write.created || write.object == nil:
		return nil, nil
	case reader == nil && now.Sub(write.at) <= maxLag:
		return write.object, nil
	case reader == nil:
		return nil, nil
	}
	alive := write.object.DeepCopyObject().(client.Object)
	err := reader.Get(ctx, client.ObjectKeyFromObject(write.object), alive)
	if apierrors.IsNotFound(err) || err == nil && alive.GetUID() != write.object.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return alive, nil
}

// Len returns the number of writes that the cache has not shown.
func (w *OwnWrites) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey)
}

// Evict implements [Evictor]: it drops writes that are too old to count.
func (w *OwnWrites) Evict(now time.Time) (empty bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, write := range w.byKey {
		if now.Sub(write.at) > maxLag {
			delete(w.byKey, key)
		}
	}
	return len(w.byKey) == 0
}
