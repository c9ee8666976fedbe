package reconcilers

import (
	"context"
	"math"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transientCounters count the errors on end of resources, by UID. The zero value is ready for use, also concurrently.
type transientCounters struct {
	mu    sync.Mutex
	byUID map[types.UID]transientCounter
}

type transientCounter struct {
	generation int64
	errors     uint8
}

// countersOf returns the counters of a node. Below a root they are kept in the memory of the resource, and go with it.
// Elsewhere they are own.
func countersOf(ctx context.Context, node any, own *transientCounters) *transientCounters {
	if p := scopeOf(ctx).pass; p != nil && p.memory != nil {
		return recall(p.memory, node, func() *transientCounters { return &transientCounters{} })
	}
	return own
}

// count counts an error of resource, and returns how many there were on end at its generation, up to 255.
func (c *transientCounters) count(resource client.Object) uint8 {
	c.mu.Lock()
	defer c.mu.Unlock()
	counter := c.byUID[resource.GetUID()]
	if counter.generation != resource.GetGeneration() {
		counter = transientCounter{generation: resource.GetGeneration()}
	}
	if counter.errors < math.MaxUint8 {
		counter.errors++
	}
	if c.byUID == nil {
		c.byUID = map[types.UID]transientCounter{}
	}
	c.byUID[resource.GetUID()] = counter
	return counter.errors
}

func (c *transientCounters) clear(resource client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byUID, resource.GetUID())
}

// counted returns the UIDs for which there is a counter.
func (c *transientCounters) counted() sets.Set[types.UID] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sets.KeySet(c.byUID)
}

// purge drops the counters of stale resources.
func (c *transientCounters) purge(ctx context.Context, stale sets.Set[types.UID]) {
	log := logr.FromContextOrDiscard(ctx).V(2)
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range stale {
		log.Info("purging counter", "id", uid)
		delete(c.byUID, uid)
	}
}
