package reconcilers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// barrierLimit is how long a cache may lag behind a write before it is believed all the same: resource versions go back
// when a cluster is restored from a backup. It is measured from the start of the request that wrote.
const barrierLimit = 10 * time.Minute

// barrier keeps a request from acting on a state of the resource that is older than what the tree itself wrote last: the event
// of a child often comes before the one of the resource's own status.
type barrier struct {
	mu      sync.Mutex
	written client.Object
	at      time.Time
}

// raise remembers the resource as the API server has it after a write at the given time.
func (b *barrier) raise(written client.Object, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written, b.at = written, at
}

// resolve returns what was written last if cached is older, and nil, for good, if it is not. What was deleted is terminating, and
// stays so.
func (b *barrier) resolve(cached client.Object, now time.Time) client.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		return nil
	}
	deleted := b.written.GetDeletionTimestamp() != nil && cached.GetDeletionTimestamp() == nil && now.Sub(b.at) <= barrierLimit
	if !deleted && !lags(cached, b.written, b.at, now) {
		b.written = nil
		return nil
	}
	return b.written.DeepCopyObject().(client.Object)
}

// confirm returns what was written last if it is still there, for a cache that shows nothing. What was deleted is not there.
func (b *barrier) confirm(ctx context.Context, config Config, now time.Time) (client.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil || b.written.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	alive, err := confirm(ctx, config, &member{object: b.written, written: b.at}, now)
	if err != nil || alive == nil {
		return nil, err
	}
	return alive.DeepCopyObject().(client.Object), nil
}

// lags tells whether cached is older than what was written at some time. Versions that cannot be compared tell nothing, and
// the cache is then believed.
func lags(cached, written client.Object, at, now time.Time) bool {
	if now.Sub(at) > barrierLimit {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err == nil && order < 0
}
