package storage

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"k8s.io/utils/third_party/forked/golang/btree"
)

var (
	// errCompacted says that a revision is older than those that are kept.
	errCompacted = errors.New("the revision has been compacted")
	// errFuture says that a revision has not been written yet.
	errFuture = errors.New("the revision is in the future")
)

// history is the state of the storage at one revision, and how it came about. It does not change.
type history struct {
	// revision is that of the last change.
	revision int64
	identity identity
	// compacted is the oldest revision that can be read if it is not 0.
	compacted int64
	// entries are ordered by key.
	entries *btree.BTree[*Entry]
	// changes are those after the compacted revision, oldest first. A revision is one change, or none if it is that of
	// an entry that was given.
	changes []change
	// progressRequests counts the requests for progress notifications.
	progressRequests int
	// superseded is closed when there is a later history.
	superseded chan struct{}
}

// newHistory returns one that has entries at a revision, and no changes. What was before that can not be read.
func newHistory(entries []*Entry, revision int64) *history {
	// The degree is a compromise: with a larger one, a write copies more, with a smaller one, a list takes more steps.
	const degree = 16
	h := &history{
		revision:   max(1, revision),
		identity:   newIdentity(),
		compacted:  revision,
		entries:    btree.New(degree, func(a, b *Entry) bool { return a.Key < b.Key }),
		superseded: make(chan struct{}),
	}
	for _, e := range entries {
		h.entries.ReplaceOrInsert(e)
	}
	return h
}

// successor returns a copy of h that nobody waits for.
func (h *history) successor() *history {
	next := *h
	next.superseded = make(chan struct{})
	return &next
}

// after returns the history that w leads to at a time, and the new entry. That of a deletion has no value and is not in
// the history. It returns false if w expects another revision of its key. Dry says that the revisions stay, that of the
// key and that of the history. It is not safe for concurrent use, see [history.with].
func (h *history) after(w write, now time.Time, dry bool) (next *history, written *Entry, ok bool) {
	before := h.get(w.key)
	if before.revisionOrZero() != w.expected {
		return nil, nil, false
	}
	c := change{revision: h.revision + 1, at: now, before: before, writer: w.writer}
	written = &Entry{Key: w.key, Value: w.value, Revision: c.revision, Expires: w.expires}
	if dry {
		c.revision, written.Revision = h.revision, w.expected
	}
	if w.value != nil {
		written.Given = before != nil && before.Given
		c.after = written
	}
	return h.with(c), written, true
}

// with returns the history that has one more change. It is not safe for concurrent use: to share the entries with the
// next history, it marks them as shared.
func (h *history) with(c change) *history {
	next := h.successor()
	next.revision, next.identity = c.revision, h.identity.after(c)
	next.entries = h.entries.Clone()
	if c.after == nil {
		next.entries.Delete(c.before)
	} else {
		next.entries.ReplaceOrInsert(c.after)
	}
	// The slice may have room that later histories use. h does not see that, for its slice ends before.
	next.changes = append(h.changes, c)
	return next
}

// compact returns a history without the changes up to revision, or h if there are none.
func (h *history) compact(revision int64) *history {
	revision = min(revision, h.revision)
	if revision <= h.compacted {
		return h
	}
	next := h.successor()
	next.compacted = revision
	dropped := h.changesUntil(revision)
	next.changes = h.changes[dropped:]
	if len(next.changes) < dropped {
		// A slice of the old array would keep the dropped changes in memory.
		next.changes = slices.Clone(next.changes)
	}
	return next
}

// lastBefore returns the revision of the last change before a time, 0 if none is kept.
func (h *history) lastBefore(t time.Time) int64 {
	n, _ := slices.BinarySearchFunc(h.changes, t, func(c change, t time.Time) int { return c.at.Compare(t) })
	if n == 0 {
		return 0
	}
	return h.changes[n-1].revision
}

// requestProgress returns a history with one more request for progress.
func (h *history) requestProgress() *history {
	next := h.successor()
	next.progressRequests++
	return next
}

// readable returns errCompacted or errFuture if the state at revision is not known.
func (h *history) readable(revision int64) error {
	switch {
	case revision > h.revision:
		return errFuture
	case revision < h.compacted:
		return errCompacted
	}
	return nil
}

// get returns what a key holds, nil if nothing.
func (h *history) get(key string) *Entry {
	e, _ := h.entries.Get(&Entry{Key: key})
	return e
}

// since returns the changes after a revision, oldest first, and errCompacted if they are not all kept. There are none
// after a revision in the future.
func (h *history) since(revision int64) ([]change, error) {
	if revision >= h.revision {
		return nil, nil
	}
	if err := h.readable(revision); err != nil {
		return nil, err
	}
	return h.changes[h.changesUntil(revision):], nil
}

// changesUntil returns how many changes there are up to a revision.
func (h *history) changesUntil(revision int64) int {
	n, _ := slices.BinarySearchFunc(h.changes, revision+1, func(c change, r int64) int {
		return cmp.Compare(c.revision, r)
	})
	return n
}

// list returns the entries in a span as they were at a readable revision, ordered by key, without those before start.
func (h *history) list(revision int64, in span, start string) []*Entry {
	earlier := h.earlier(revision, in)
	var found []*Entry
	h.entries.AscendGreaterOrEqual(&Entry{Key: max(in.key, start)}, func(e *Entry) bool {
		if !in.contains(e.Key) {
			return false
		}
		if _, replaced := earlier[e.Key]; !replaced {
			found = append(found, e)
		}
		return true
	})
	if len(earlier) == 0 {
		return found
	}
	for key, e := range earlier {
		if e != nil && key >= start {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *Entry) int { return cmp.Compare(a.Key, b.Key) })
	return found
}

// earlier returns what the keys in a span that changed after a revision held at that revision, nil for nothing.
func (h *history) earlier(revision int64, in span) map[string]*Entry {
	changes, _ := h.since(revision)
	var held map[string]*Entry
	for _, c := range slices.Backward(changes) {
		if key := c.key(); in.contains(key) {
			if held == nil {
				held = map[string]*Entry{}
			}
			held[key] = c.before
		}
	}
	return held
}
