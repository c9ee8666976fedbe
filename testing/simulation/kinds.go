package simulation

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are those of which there is an object, or was one. The zero value has none.
type kinds struct {
	mu  sync.Mutex
	all map[schema.GroupKind]bool
	// appeared is told of each further kind. It is nil at first.
	appeared func(kind schema.GroupKind)
}

func (k *kinds) has(kind schema.GroupKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[kind]
}

func (k *kinds) add(kind schema.GroupKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[kind] {
		return
	}
	if k.all == nil {
		k.all = map[schema.GroupKind]bool{}
	}
	k.all[kind] = true
	if k.appeared != nil {
		k.appeared(kind)
	}
}

// tell has a function be called for all kinds. It must not wait for anything.
func (k *kinds) tell(appeared func(kind schema.GroupKind)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kind := range slices.SortedFunc(maps.Keys(k.all), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		appeared(kind)
	}
	k.appeared = appeared
}
