// Package state holds the objects of a cluster as they are at a moment, and compares two such states.
package state

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/fault"
)

// Creation is how an object came into being.
type Creation struct {
	fault.Key
	// Actor is who created the object, empty for the API server.
	Actor string
	At    time.Time
	// previous is the UID of the object of the same key that was there before, if there was one.
	previous types.UID
	// generateName is the prefix of the name if the name was generated.
	generateName string
}

// State is the objects of a cluster, and those that were there before. The zero value is that of no cluster; see [New].
type State struct {
	kinds   map[schema.GroupKind]map[types.NamespacedName]*Object
	created map[types.UID]Creation
	// last are the UIDs of the last objects of all keys.
	last map[fault.Key]types.UID
}

// New returns an empty state.
func New() State {
	return State{
		kinds:   map[schema.GroupKind]map[types.NamespacedName]*Object{},
		created: map[types.UID]Creation{},
		last:    map[fault.Key]types.UID{},
	}
}

// Get returns an object, nil if there is none.
func (s State) Get(key fault.Key) *Object {
	return s.kinds[key.Kind][types.NamespacedName{Namespace: key.Namespace, Name: key.Name}]
}

// Of returns the objects of a kind in the order of their keys.
func (s State) Of(kind schema.GroupKind) []*Object {
	return slices.SortedFunc(maps.Values(s.kinds[kind]), compareObjects)
}

// All returns all objects in the order of their keys.
func (s State) All() []*Object {
	var all []*Object
	for _, objects := range s.kinds {
		all = slices.AppendSeq(all, maps.Values(objects))
	}
	slices.SortFunc(all, compareObjects)
	return all
}

func compareObjects(a, b *Object) int { return a.Compare(b.Key) }

// Created returns how an object came into being, also one that is gone. It is zero if that is not known.
func (s State) Created(uid types.UID) Creation { return s.created[uid] }

// Previous returns how the object came into being that had the key of another one before. There may be none.
func (s State) Previous(uid types.UID) (Creation, bool) {
	c, ok := s.created[s.created[uid].previous]
	return c, ok
}

// Replace has an object follow another one of the same key. Before is nil for one that is created, and after for one
// that is deleted.
func (s State) Replace(before, after *Object) {
	if after != nil {
		if s.kinds[after.Kind] == nil {
			s.kinds[after.Kind] = map[types.NamespacedName]*Object{}
		}
		s.kinds[after.Kind][types.NamespacedName{Namespace: after.Namespace, Name: after.Name}] = after
	} else if before != nil {
		delete(s.kinds[before.Kind], types.NamespacedName{Namespace: before.Namespace, Name: before.Name})
	}
}

// Create notes how an object came into being.
func (s State) Create(obj *Object, actor string, at time.Time) {
	if Passing(obj.Kind) {
		return
	}
	s.created[obj.UID] = Creation{
		Key: obj.Key, Actor: actor, At: at, previous: s.last[obj.Key], generateName: obj.generateName,
	}
	s.last[obj.Key] = obj.UID
}

// Clone returns a state that does not change with s.
func (s State) Clone() State {
	kinds := make(map[schema.GroupKind]map[types.NamespacedName]*Object, len(s.kinds))
	for kind, objects := range s.kinds {
		kinds[kind] = maps.Clone(objects)
	}
	return State{kinds, maps.Clone(s.created), maps.Clone(s.last)}
}

// Passing reports whether objects of a kind come, change and go in a cluster in which nothing happens. They are not
// part of what is compared.
func Passing(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, schema.GroupKind{Kind: "Event"},
		schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return true
	}
	return false
}

// Where returns the objects that a function selects, which also gets how they came into being.
func (s State) Where(selected func(obj *Object, c Creation) bool) State {
	some := State{map[schema.GroupKind]map[types.NamespacedName]*Object{}, s.created, s.last}
	for _, obj := range s.All() {
		if selected(obj, s.created[obj.UID]) {
			some.Replace(nil, obj)
		}
	}
	return some
}
