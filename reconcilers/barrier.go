package reconcilers

import (
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

// resolve returns what was written last if cached is older, and nil, for good, if it is not.
func (b *barrier) resolve(cached client.Object, now time.Time) client.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		return nil
	}
	if !lags(cached, b.written, b.at, now) {
		b.written = nil
		return nil
	}
	return b.written.DeepCopyObject().(client.Object)
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
