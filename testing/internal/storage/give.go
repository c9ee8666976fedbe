package storage

import (
	"errors"
	"fmt"
)

// Give stores entries as if they had always been there: no watch is told of them, and readers of the past see them,
// too. They take the place of what their keys hold.
//
// An entry may have any revision, also one that others have. One without gets a revision that no entry has and that is
// lower than the one that the storage began with, or, if there is none left, the next one. No revision of a later write
// is lower than that of an entry. Give takes over the entries.
//
// It stores nothing and returns an error, which names the key, if an entry is larger than etcd would store.
func (s *Storage) Give(entries ...*Entry) error {
	for _, e := range entries {
		switch {
		case len(e.Value) == 0:
			return fmt.Errorf("%s: %w", e.Key, errors.New("the entry has no value"))
		case len(e.Value) > largest:
			return fmt.Errorf("%s: %w", e.Key, errTooLarge)
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	h := s.current.Load()
	next := h.successor()
	next.identity = newIdentity()
	next.entries = h.entries.Clone()
	for _, e := range entries {
		if e.Revision != 0 {
			s.take(e.Revision)
			next.revision = max(next.revision, e.Revision)
		}
	}
	for _, e := range entries {
		e.Given = true
		if e.Revision == 0 {
			e.Revision = s.unused(next)
		}
		next.entries.ReplaceOrInsert(e)
	}
	s.publish(next)
	return nil
}

// take notes that an entry has a revision. The caller holds the mutex.
func (s *Storage) take(revision int64) {
	if revision >= s.options.Revision {
		return
	}
	taken := make(map[int64]bool, len(s.taken)+1)
	for r := range s.taken {
		taken[r] = true
	}
	taken[revision] = true
	s.taken = taken // Forks have the old map.
}

// unused returns a revision for an entry that is given without one. The caller holds the mutex.
func (s *Storage) unused(next *history) int64 {
	for s.given < s.options.Revision-1 {
		if s.given++; !s.taken[s.given] {
			return s.given
		}
	}
	next.revision++
	return next.revision
}
