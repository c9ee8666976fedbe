package helm

import (
	"context"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/lru"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generators/gotemplate"
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
	key.reconciler, _ = component.ReconcilerNameFromContext(ctx)
	if resource, err := component.ComponentFromContext(ctx); err == nil {
		key.uid = string(resource.GetUID())
	}
	return key
}

// remember replaces what was looked up for a component.
func (m *memory) remember(key componentKey, lookups *gotemplate.Lookups) {
	m.made.Add(key, lookups)
}

// identity repeats what was looked up. For a component that is not known, the answer differs from all before.
func (m *memory) identity(ctx context.Context, key componentKey) (string, error) {
	known, ok := m.made.Get(key)
	if !ok {
		return "unknown " + strconv.FormatInt(m.unknown.Add(1), 10), nil
	}
	identity, err := known.(*gotemplate.Lookups).Identity(ctx)
	if meta.IsNoMatchError(err) {
		// A template may look up a kind that does not exist. There may be another answer when it does.
		return "no match", nil
	}
	return identity, err
}
