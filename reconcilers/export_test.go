package reconcilers

import (
	"time"

	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithOwnerIndex returns a config that finds children through indexer, as [NewConfig] makes it of a manager.
func (c Config) WithOwnerIndex(indexer client.FieldIndexer) Config {
	c.owners = listing.NewIndex(indexer)
	return c
}

// RegisterOwnerIndex does what the set-up of a node with children of the type of obj does.
func (c Config) RegisterOwnerIndex(obj client.Object) {
	c.owners.Register(indexedType(c.Client, obj))
}

// ForgetUnwatched forgets which kinds were logged that no controller watches.
func ForgetUnwatched() { saidUnwatched.Clear() }

// Remembered counts the resources that a root remembers something of.
func (r *root) Remembered() int { return r.states.Len() }

// RememberedWrites counts the writes of children that a root remembers, of all resources.
func (r *root) RememberedWrites() int {
	count := 0
	r.states.Each(func(_ types.NamespacedName, _, value any) {
		switch writes := value.(type) {
		case *resourcestate.LastWrites:
			count += writes.Len()
		case *resourcestate.OwnWrites:
			count += writes.Len()
		}
	})
	return count
}

// RememberedCounters counts the resources whose errors a root counts.
func (r *root) RememberedCounters() int {
	count := 0
	r.states.Each(func(_ types.NamespacedName, _, value any) {
		if errors, ok := value.(*errorCount); ok && errors.errors > 0 {
			count++
		}
	})
	return count
}

// WithSyncTimeout returns a config whose readers wait that long for an informer to sync.
func (c Config) WithSyncTimeout(timeout time.Duration) Config {
	c.syncTimeout = timeout
	return c
}

// ErrorConditionOf returns what a condition says of err. The errors of at came up at those paths.
func ErrorConditionOf(err error, at map[error]string) (metav1.Condition, bool) {
	p := &requestState{}
	for found, path := range at {
		p.failures = append(p.failures, failure{err: found, path: path, object: "ConfigMap a", class: Classify(found)})
	}
	return errorCondition(err, p.locate)
}
