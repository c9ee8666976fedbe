package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithOwnerIndex returns a config that finds children through indexer, as [NewConfig] makes it of a manager.
func (c Config) WithOwnerIndex(indexer client.FieldIndexer) Config {
	c.owners = newOwnerIndex(indexer)
	return c
}

// RegisterOwnerIndex does what the set-up of a node with children of the type of obj does.
func (c Config) RegisterOwnerIndex(obj client.Object) error {
	return c.owners.register(context.Background(), c.Client, obj)
}

// Remembered counts the resources that a root remembers something of.
func (r *ResourceReconciler[T]) Remembered() int {
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	return len(r.memories.by)
}

// RememberedChildren counts what the root remembers of all children of all resources.
func (r *ResourceReconciler[T]) RememberedChildren() int {
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	count := 0
	for _, m := range r.memories.by {
		for _, value := range m.values {
			switch value := value.(type) {
			case *family:
				count += len(value.members)
			case *resourceLessons:
				count += len(value.byUID)
			}
		}
	}
	return count
}

// RememberedCounters counts the resources whose errors a root counts.
func (r *ResourceReconciler[T]) RememberedCounters() int {
	r.memories.mu.Lock()
	defer r.memories.mu.Unlock()
	count := 0
	for _, m := range r.memories.by {
		for _, value := range m.values {
			if counters, ok := value.(*transientCounters); ok {
				count += len(counters.counted())
			}
		}
	}
	return count
}
