package fault

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// End is how a run ended.
type End struct {
	// NotAtRest says how the last request ended if the run was not at rest then; empty if it was.
	NotAtRest string
	// Objects are those that changed in the run, by their aliases, but for those with generated names that are gone.
	Objects map[Key]*Changed
	// Effects are what was done to objects, by the groups of their names.
	Effects map[Key]*Effects
	// Externals are the states of all that is outside of the clusters, as JSON; empty if there is none.
	Externals string
	Names     *Names
}

// Object is an object at a moment of a run.
type Object interface {
	// Same reports whether another object is the same in each field, so that there is nothing to compare.
	Same(other Object) bool
	// Normal returns what must be the same in each run.
	Normal() map[string]any
}

// Changed is what became of an object.
type Changed struct {
	// Given is the object at the beginning, and Last at the end. Both may be nil.
	Given, Last Object
	// Group is the key of its effects.
	Group Key
	// Writes are what the code made of the object when it existed. They need not be known.
	Writes []Write
}

// Write is an object before and after a write.
type Write struct{ Before, After Object }

// rewrites reports whether a write changed a field that had a value.
func (c *Changed) rewrites(kind schema.GroupKind, path string) bool {
	return slices.ContainsFunc(c.Writes, func(w Write) bool {
		return slices.ContainsFunc(Differences(kind, w.After, w.Before), func(d Difference) bool {
			return d.Path == path && !d.added
		})
	})
}

// unchanged is an object that is as the given one was.
func (c *Changed) unchanged() *Changed {
	return &Changed{Given: c.Given, Last: c.Given, Group: c.Group}
}

// Effects are what the code did to an object.
type Effects struct {
	Created int
	// Deleted counts deletions by the control plane, too: whoever comes first does the same.
	Deleted int
	// Wrote is set if something else than the status of an object that was given was written.
	Wrote bool
	// Rewrote is set if a write of something else than the status was accepted, also if it changed nothing: it changes
	// something if somebody else wrote before.
	Rewrote bool
	// Overwrote is set if a change by somebody else is lost at the end, and the object is still there.
	Overwrote bool
}

// EffectsOf returns the effects of a group, which it makes if there are none.
func (e *End) EffectsOf(group Key) *Effects {
	if e.Effects[group] == nil {
		e.Effects[group] = &Effects{}
	}
	return e.Effects[group]
}
