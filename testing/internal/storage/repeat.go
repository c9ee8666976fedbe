package storage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
)

// identity is a digest of what led to a history: where it began, and each change since. Storages with the same one
// have the same entries and changes, when they expire aside, and have deleted the same.
type identity [sha256.Size]byte

var beginnings atomic.Uint64

// newIdentity returns the identity of a beginning that no other storage of this process has.
func newIdentity() (i identity) {
	binary.BigEndian.PutUint64(i[:], beginnings.Add(1))
	return i
}

// after returns the identity after a change.
func (i identity) after(c change) identity {
	revision := binary.BigEndian.AppendUint64(nil, uint64(c.revision))
	var value []byte
	if c.after != nil {
		value = c.after.Value
	}
	h := sha256.New()
	for _, part := range [][]byte{i[:], revision, []byte(c.key()), {0}, value} {
		h.Write(part)
	}
	return identity(h.Sum(nil))
}

// State identifies what a storage has, and how that came about: two storages of one state answer a request alike, if
// it comes at the same time of their clocks, and are in one state after it. A storage gets a state of its own by
// [New], and by [Storage.Give]; a fork begins with that of its original.
type State struct {
	history identity
	names   int
}

// State returns the state, and false while a request has a name that it may yet give back.
func (s *Storage) State() (State, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return State{s.current.Load().identity, s.names}, len(s.reserved) == 0
}

// Effect is what a request did to a storage.
type Effect struct {
	before, after State
	changes       []change
}

// Size is how many bytes the new values have.
func (e Effect) Size() (n int) {
	for _, c := range e.changes {
		if c.after != nil {
			n += len(c.after.Value)
		}
	}
	return n
}

// Recording records the effect of a request.
type Recording struct {
	storage *Storage
	effect  Effect
	// last is that after the last change of the request, other that somebody else changed something before that.
	last  identity
	other bool
}

type recordingKey struct{}

// Record records what requests with the returned context do to a storage that is in a state.
func (s *Storage) Record(ctx context.Context, now State) (context.Context, *Recording) {
	r := &Recording{storage: s, effect: Effect{before: now}, last: now.history}
	return context.WithValue(ctx, recordingKey{}, r), r
}

// recorded has the recording of a context know a change that leads from one history to the next. The caller holds the
// mutex.
func (s *Storage) recorded(ctx context.Context, from, to *history) {
	r, _ := ctx.Value(recordingKey{}).(*Recording)
	if r == nil || r.storage != s {
		return
	}
	r.other = r.other || r.last != from.identity
	r.effect.changes = append(r.effect.changes, to.changes[len(to.changes)-1])
	r.last = to.identity
}

// Effect returns what the requests did, and false if somebody else wrote meanwhile.
func (r *Recording) Effect() (Effect, bool) {
	r.storage.mutex.Lock()
	defer r.storage.mutex.Unlock()
	now := r.storage.current.Load().identity
	r.effect.after = State{now, r.storage.names}
	return r.effect, !r.other && r.last == now && len(r.storage.reserved) == 0
}

// Repeat does what a request did to another storage, and returns false if s is in another state than that one was. Both
// have the same entries then: what is decoded of one needs not be decoded again.
func (s *Storage) Repeat(e Effect) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	h := s.current.Load()
	if (State{h.identity, s.names}) != e.before || len(s.reserved) > 0 || s.options.Written != nil || s.timers != nil {
		return false
	}
	for _, c := range e.changes {
		h = h.with(c)
		s.publish(h)
		if c.after == nil {
			s.countEnd(c.key())
		}
	}
	s.names = e.after.names
	return true
}
