package storage

import (
	"context"
	"maps"
	"time"

	"k8s.io/apiserver/pkg/registry/generic"
)

// Fork returns a storage that begins with what s has, its history included. Neither sees what is written to the other.
// They share memory until then, so a fork costs less than a microsecond. The clock of the fork is now, or that of s if
// now is nil. Objects of a fork do not expire, Written is not called, and a fork need not be closed. It may be used in
// the bubble in which it was made, or outside of all if it was made there.
func (s *Storage) Fork(now func() time.Time) *Storage {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	f := &Storage{options: s.options, ended: s.ended, names: s.names, given: s.given, taken: s.taken}
	f.options.Written = nil
	if now != nil {
		f.options.Now = now
	}
	s.endedShared, f.endedShared = true, true
	h := s.current.Load()
	next := h.successor()
	next.entries = h.entries.Clone()
	// Without room for more, the first write copies the changes: s may write to the room.
	next.changes = h.changes[:len(h.changes):len(h.changes)]
	f.current.Store(next)
	return f
}

// Entry returns what a key holds, nil if nothing.
func (s *Storage) Entry(key string) *Entry { return s.current.Load().get(key) }

// Entries returns what the keys with a prefix hold, in the order of the keys.
func (s *Storage) Entries(prefix string) []*Entry {
	h := s.current.Load()
	return h.list(h.revision, span{key: prefix, prefix: true}, "")
}

// Change is what one write did to one key.
type Change struct {
	Revision int64
	// Before is nil if the write created the key, After if it deleted the key.
	Before, After *Entry
	// Writer is what [As] says of the write; empty if nothing.
	Writer string
}

// Changes returns the changes after a revision that are kept, oldest first.
func (s *Storage) Changes(since int64) []Change {
	h := s.current.Load()
	since = max(since, h.compacted)
	if since >= h.revision {
		return nil
	}
	kept := h.changes[h.changesUntil(since):]
	changes := make([]Change, len(kept))
	for i, c := range kept {
		changes[i] = Change{c.revision, c.before, c.after, c.writer}
	}
	return changes
}

type writerKey struct{}

// As has writes with the returned context made by a writer, see [Change].
func As(ctx context.Context, writer string) context.Context {
	return context.WithValue(ctx, writerKey{}, writer)
}

// WriterOf returns the writer that [As] has set, empty if none.
func WriterOf(ctx context.Context) string {
	writer, _ := ctx.Value(writerKey{}).(string)
	return writer
}

// Clock returns the clock of the storage, nil if that is the clock of the process or the bubble.
func (s *Storage) Clock() func() time.Time { return s.options.Now }

// Ended returns how many objects of a key were deleted.
func (s *Storage) Ended(key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended[key]
}

// countEnd counts a deletion. The caller holds the mutex.
func (s *Storage) countEnd(key string) {
	if s.endedShared {
		s.ended, s.endedShared = maps.Clone(s.ended), false
	}
	if s.ended == nil {
		s.ended = map[string]int{}
	}
	s.ended[key]++
}

// DryRun returns a fork for one request that is to have no effect. What is written to it has the resource version that
// it had before, or none if it is new.
func (s *Storage) DryRun() *Storage {
	f := s.Fork(nil)
	f.dry = true
	return f
}

// IsDryRun reports whether s is what [Storage.DryRun] returned.
func (s *Storage) IsDryRun() bool { return s.dry }

// Name returns the first name that name makes of a number, and the number. It is one after the last that was taken
// whose key holds nothing, and that nobody else has at the moment. Who asks calls [Storage.EndName] later.
func (s *Storage) Name(name func(n int) (name, key string)) (string, int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	h := s.current.Load()
	for n := s.names + 1; ; n++ {
		name, key := name(n)
		if s.reserved[n] || h.get(key) != nil {
			continue
		}
		if s.reserved == nil {
			s.reserved = map[int]bool{}
		}
		s.reserved[n] = true
		return name, n
	}
}

// EndName takes the number of a name, or gives it back if no object got the name.
func (s *Storage) EndName(n int, take bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.reserved, n)
	if take {
		s.names = max(s.names, n)
	}
}

type storageKey struct{}

// With has requests with the returned context read and write s, if the resources have the decorator that
// [Storage.ByContext] returns.
func With(ctx context.Context, s *Storage) context.Context {
	return context.WithValue(ctx, storageKey{}, s)
}

// Of returns the storage that [With] has set, or otherwise.
func Of(ctx context.Context, otherwise *Storage) *Storage {
	if s, ok := ctx.Value(storageKey{}).(*Storage); ok {
		return s
	}
	return otherwise
}

// ByContext returns the decorator of resources that are stored in the storage of the context of each request, see
// [With], or in s if the context has none.
func (s *Storage) ByContext() generic.StorageDecorator { return s.decorator(true) }

// in returns the store of a request. The end of the resource does not end watches of a fork: to wait for it would tie
// it to the bubble of the first watch.
func (s *store) in(ctx context.Context) *store {
	if !s.byContext {
		return s
	}
	kept := Of(ctx, nil)
	if kept == nil {
		return s
	}
	return &store{
		storage: kept, prefix: s.prefix, codec: s.codec, newFunc: s.newFunc, ended: context.Background(),
		forked: true, lag: lagOf(ctx),
	}
}
