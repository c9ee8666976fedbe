package helm

import (
	"context"
	"strconv"
	"sync/atomic"

	"k8s.io/utils/lru"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// maxComponents is for how many components a generator knows what was looked up. The components that are used least are
// forgotten.
const maxComponents = 10000

// memory knows what was looked up for each component. It is safe for concurrent use.
type memory struct {
	made *lru.Cache
	// unknown counts the answers for components that are not known.
	unknown atomic.Int64
}

func newMemory() *memory {
	return &memory{made: lru.New(maxComponents)}
}

// componentKey tells components with the same name apart, also if two reconcilers share a generator.
type componentKey struct {
	reconciler, uid, namespace, name string
}

func keyOf(ctx context.Context, namespace, name string) componentKey {
	key := componentKey{namespace: namespace, name: name}
	key.reconciler, _ = generator.ReconcilerNameFromContext(ctx)
	if resource, err := generator.ComponentFromContext(ctx); err == nil {
		key.uid = string(resource.GetUID())
	}
	return key
}

// remember replaces what was looked up for a component.
func (m *memory) remember(key componentKey, lookups *gotemplate.Lookups) {
	m.made.Add(key, lookups)
}

// identity repeats what was looked up. For a component that is not known, the answer differs from all before.
func (m *memory) identity(ctx context.Context, key componentKey) string {
	known, ok := m.made.Get(key)
	if !ok {
		return "unknown " + strconv.FormatInt(m.unknown.Add(1), 10)
	}
	identity, err := known.(*gotemplate.Lookups).Identity(ctx)
	if err != nil {
		// The chart is rendered, which may do without the answer. If not, its error says which template needs it.
		return "failed: " + err.Error()
	}
	return identity
}
