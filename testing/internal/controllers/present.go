package controllers

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are those of which there is an object, or was one. The zero value has none. It is safe for concurrent use.
type Kinds struct {
	mu  sync.Mutex
	all map[schema.GroupKind]bool
	// appeared is told of each further kind. It is nil at first.
	appeared func(kind schema.GroupKind)
}

func (k *Kinds) has(kind schema.GroupKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[kind]
}

// Add says that there is an object of a kind.
func (k *Kinds) Add(kind schema.GroupKind) {
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
func (k *Kinds) tell(appeared func(kind schema.GroupKind)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kind := range slices.SortedFunc(maps.Keys(k.all), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		appeared(kind)
	}
	k.appeared = appeared
}
