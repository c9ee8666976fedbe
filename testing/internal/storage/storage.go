package storage

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Options are those of [New]. The zero value is what a cluster has.
type Options struct {
	// Retention is how long a change can be read back: by watches that begin in the past, by lists of an exact
	// revision, and by continued lists. Older changes are compacted when something is written. Zero is 5 minutes, the
	// interval at which kube-apiserver compacts etcd. Less than zero keeps all changes, so that only
	// [Storage.Compact] compacts.
	Retention time.Duration
	// BookmarkInterval is how long after the first change that a watch was not told of, because it does not concern
	// the watch, the watch gets a bookmark. Nothing is sent while nothing changes. Zero is 1 minute, the interval of
	// the watch cache of kube-apiserver. Less than zero sends no bookmarks but those at the end of initial events and
	// those requested by RequestWatchProgress.
	BookmarkInterval time.Duration
	// Written is called with each change, in the order of the revisions, before anybody can read the change. If it
	// returns an error, the write fails and has no effect, and another write gets the revision. The context is that of
	// the write; an object that expires is deleted with the background context. Written must not write to the storage.
	// Nil is not called.
	Written func(ctx context.Context, e *Entry) error
	// Entries are what the storage has at first, and Revision is the one that it begins at. They are those of an
	// earlier storage; changes of that one have expired. Written is not called with them. Zero is an empty storage.
	Entries  []*Entry
	Revision int64
	// Now is the clock by which a server stamps objects, see [Storage.Clock]. Nil is that of the process or the bubble.
	// Retention, intervals and expiry do not go by it.
	Now func() time.Time
}

// Storage is a database of API objects in memory. It is safe for concurrent use.
type Storage struct {
	options Options

	// current is the latest history. It is loaded without the mutex and stored with it.
	current atomic.Pointer[history]

	// mutex puts writes in order. Nobody waits for anything while holding it, but for what Written does.
	mutex sync.Mutex
	// timers holds one timer for each key whose entry expires. It is nil when the storage is closed.
	timers map[string]*time.Timer
	// ended counts the deletions of each key. It is copied before a write if endedShared says that a fork has it, too.
	ended       map[string]int
	endedShared bool
	// names is the number of the generated name that was taken last, reserved are those that may be taken soon.
	names    int
	reserved map[int]bool
	// dry is whether writes change no revision.
	dry bool
	// given is the last revision that an entry got that was given without one, taken are lower revisions of others. The
	// map is not changed.
	given int64
	taken map[int64]bool
}

// New returns a storage, which is empty and at revision 1 without other options.
func New(options Options) *Storage {
	options.Retention = cmp.Or(options.Retention, 5*time.Minute)
	options.BookmarkInterval = cmp.Or(options.BookmarkInterval, time.Minute)
	s := &Storage{options: options, timers: map[string]*time.Timer{}}
	s.current.Store(newHistory(options.Entries, options.Revision))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, e := range options.Entries {
		s.expire(e.Key, e.Revision, e.Expires)
	}
	s.options.Entries = nil
	return s
}

// Revision returns the revision of the last write.
func (s *Storage) Revision() int64 { return s.current.Load().revision }

// Compact drops all changes up to revision. From then on, lists of an older revision and watches that begin at an older
// one fail with 410 Expired. A revision after that of the last write stands for the latter.
func (s *Storage) Compact(revision int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.publish(s.current.Load().compact(revision))
}

// Close stops the timers of objects that expire; they stay for good. Without it, they keep the storage in memory until
// the last of them has expired. Close is for a storage that nobody uses any longer; it ends no watches.
func (s *Storage) Close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.timers = nil
}

// write carries out w and returns the new entry, see [history.after]. It does nothing and returns false if the key is
// not at the revision that w expects.
func (s *Storage) write(ctx context.Context, w write) (*Entry, bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	w.writer = WriterOf(ctx)
	h := s.current.Load()
	next, written, ok := h.after(w, now, s.dry)
	if !ok {
		return nil, false, nil
	}
	s.recorded(ctx, h, next)
	if s.options.Retention > 0 {
		next = next.compact(next.lastBefore(now.Add(-s.options.Retention)))
	}
	if s.options.Written != nil {
		if err := s.options.Written(ctx, written); err != nil {
			return nil, false, apierrors.NewInternalError(fmt.Errorf("keep what is written to %s: %w", w.key, err))
		}
	}
	s.publish(next)
	if w.value == nil {
		s.countEnd(w.key)
	}
	s.expire(w.key, next.revision, w.expires)
	return written, true, nil
}

// requestProgress has all watches with progress notifications send one.
func (s *Storage) requestProgress() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.publish(s.current.Load().requestProgress())
}

// publish makes next the current history and wakes who waits for one. The caller holds the mutex.
func (s *Storage) publish(next *history) {
	previous := s.current.Swap(next)
	if previous != next {
		close(previous.superseded)
	}
}

// expireRetry is how long after the deletion of an expired object has failed it is tried again.
const expireRetry = time.Second

// expire has a key deleted at a time if it is still at revision then. The zero time is never. The caller holds the
// mutex.
func (s *Storage) expire(key string, revision int64, at time.Time) {
	if timer, ok := s.timers[key]; ok {
		timer.Stop()
		delete(s.timers, key)
	}
	if at.IsZero() || s.timers == nil {
		return
	}
	s.timers[key] = time.AfterFunc(time.Until(at), func() {
		if _, _, err := s.write(context.Background(), write{key: key, expected: revision}); err == nil {
			return
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.current.Load().get(key).revisionOrZero() == revision {
			s.expire(key, revision, time.Now().Add(expireRetry))
		}
	})
}
