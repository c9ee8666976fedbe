package stash

import (
	"context"
	"maps"
	"reflect"
	"slices"
)

// Conflict is a key under which two copies of a store have stored different values, or one has and the other one has
// removed what was there. First and Second are the indexes of the copies.
type Conflict struct {
	Key           Key
	First, Second int
}

// Merge changes the store of ctx as its copies were changed, which [WithCopy] has made. They are not used any more. Of
// different values under one key, that of the first copy counts. A value that a copy has put back is no change. The
// conflicts are sorted by the keys.
//
// It panics if a context has no store.
func Merge(ctx context.Context, copies ...context.Context) []Conflict {
	into := from(ctx)
	changes := map[Key]changed{}
	conflicts := map[Key]Conflict{}
	for i, c := range copies {
		copied := from(c)
		copied.mu.RLock()
		for key := range copied.changed {
			before, after := into.entry(key), copied.entryLocked(key)
			if isSame(before, after) {
				continue
			}
			switch known, ok := changes[key]; {
			case !ok:
				changes[key] = changed{after, i}
			case !isSame(known.entry, after):
				if _, noted := conflicts[key]; !noted {
					conflicts[key] = Conflict{Key: key, First: known.by, Second: i}
				}
			}
		}
		copied.mu.RUnlock()
	}
	for key, c := range changes {
		if c.there {
			StoreValue(ctx, key, c.value)
		} else {
			ClearValue(ctx, key)
		}
	}
	var sorted []Conflict
	for _, key := range slices.Sorted(maps.Keys(conflicts)) {
		sorted = append(sorted, conflicts[key])
	}
	return sorted
}

// entry is what a store has under a key.
type entry struct {
	value any
	there bool
}

// changed is an entry of a copy.
type changed struct {
	entry
	by int
}

func (s *store) entry(key Key) entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entryLocked(key)
}

func (s *store) entryLocked(key Key) entry {
	value, there := s.values[key]
	return entry{value, there}
}

func isSame(a, b entry) bool { return a.there == b.there && reflect.DeepEqual(a.value, b.value) }
