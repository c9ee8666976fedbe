package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// View is what a cache of a [Store] has seen. At first that is everything, and whatever happens is seen at once. It
// belongs to one store. It is safe for concurrent use.
type View struct {
	mu sync.Mutex
	// held and shown have revisions: where a kind is held, and up to where it was shown.
	held, shown map[schema.GroupKind]int64
	hidden      map[Key]bool
}

// NewView returns a view.
func NewView() *View {
	return &View{
		held: map[schema.GroupKind]int64{}, shown: map[schema.GroupKind]int64{}, hidden: map[Key]bool{},
	}
}

// HoldAt shows a kind as it was at a revision, until CatchUp, and reports whether it does. A revision before one that
// was shown already is ignored: a cache never goes back.
func (v *View) HoldAt(kind schema.GroupKind, revision int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	holds := revision >= v.shown[kind]
	if holds {
		v.held[kind] = revision
	}
	return holds
}

// Hide leaves objects out, until CatchUp: the cache has not seen them yet. It reports whether it does so with all of
// them. An object of a kind that was shown already is ignored, unless it is hidden: a cache never goes back.
func (v *View) Hide(keys ...Key) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	hides := true
	for _, key := range keys {
		if _, shown := v.shown[key.Kind]; shown && !v.hidden[key] {
			hides = false
			continue
		}
		v.hidden[key] = true
	}
	return hides
}

// CatchUp shows everything. It reports whether something was held or hidden.
func (v *View) CatchUp() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	behind := len(v.held) > 0 || len(v.hidden) > 0
	clear(v.held)
	clear(v.hidden)
	return behind
}

// show returns the revision up to which a kind is shown, for a store with the given revision. Nil shows everything.
func (v *View) show(kind schema.GroupKind, revision int64) int64 {
	if v == nil {
		return revision
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if held, ok := v.held[kind]; ok {
		revision = min(held, revision)
	}
	v.shown[kind] = revision
	return revision
}

// hides returns the objects of a kind that are left out.
func (v *View) hides(kind schema.GroupKind) []Key {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var hidden []Key
	for key := range v.hidden {
		if key.Kind == kind {
			hidden = append(hidden, key)
		}
	}
	return hidden
}
