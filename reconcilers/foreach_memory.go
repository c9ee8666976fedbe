package reconcilers

import (
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// itemsMemory is what a loop remembers of the items of one resource from one request to the next.
type itemsMemory struct {
	byKey map[string]*itemMemory
	// recorded are the keys that the last request has recorded, and lost is how many requests in a row did not find
	// those of the one before.
	recorded []string
	lost     statusfield.Losses
}

// itemMemory is what is remembered of one item.
type itemMemory struct {
	state resourcestate.State
	// conditions are those of the item as they were last.
	conditions []metav1.Condition
	// finished is true if the item has cleaned up after the resource was deleted.
	finished bool
}

func newItemsMemory() *itemsMemory { return &itemsMemory{byKey: map[string]*itemMemory{}} }

func (m *itemsMemory) of(key string) *itemMemory {
	known, ok := m.byKey[key]
	if !ok {
		known = &itemMemory{}
		m.byKey[key] = known
	}
	return known
}

func (m *itemsMemory) forget(key string) {
	if known, ok := m.byKey[key]; ok {
		known.state.Close()
		delete(m.byKey, key)
	}
}

// Evict implements [resourcestate.Evictor].
func (m *itemsMemory) Evict(now time.Time) (empty bool) {
	for _, known := range m.byKey {
		known.state.EndRequest(now)
	}
	return false
}

// Close implements io.Closer.
func (m *itemsMemory) Close() error {
	for key := range m.byKey {
		m.forget(key)
	}
	return nil
}

// withdrawal is the supervisor of an item that is gone.
type withdrawal struct {
	// outer is told too, if it also says Withdraw; it may be nil.
	outer Supervisor
	// left is true if objects of the item may be there.
	left atomic.Bool
}

var _ Supervisor = (*withdrawal)(nil)

func (w *withdrawal) Supervision() Supervision               { return Withdraw }
func (w *withdrawal) Suspend(client.Object) (bool, error)    { return false, nil }
func (w *withdrawal) SuspensionOf(client.Object) apis.Health { return apis.Health{} }

// Observe notes whether something is left.
func (w *withdrawal) Observe(object ObservedObject) {
	if object.Object != nil || object.Health != nil || object.Err != nil {
		w.left.Store(true)
	}
	if w.outer != nil && w.outer.Supervision() == Withdraw {
		w.outer.Observe(object)
	}
}
