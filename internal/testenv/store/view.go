package store

import "k8s.io/apimachinery/pkg/runtime/schema"

// View is what a cache of a [Store] has seen. At first that is everything, and whatever happens is seen at once. It
// belongs to one store. It is safe for concurrent use.
type View struct{}

// NewView returns a view.
func NewView() *View { panic("TODO") }

// HoldAt shows a kind as it was at a revision, until CatchUp. A revision before one that was shown already is ignored:
// a cache never goes back.
func (v *View) HoldAt(kind schema.GroupKind, revision int64) { panic("TODO") }

// Hide leaves objects out, until CatchUp: the cache has not seen them yet.
func (v *View) Hide(keys ...Key) { panic("TODO") }

// CatchUp shows everything. It reports whether something was held or hidden.
func (v *View) CatchUp() bool { panic("TODO") }
